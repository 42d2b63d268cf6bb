/** Types of rooms.mjs, for the architecture test. */
export interface Room {
  folder: string;
  rooms: string[];
  ports?: string[];
  packages: string[];
  node: boolean;
  vscode: boolean;
  only?: Record<string, string[]>;
  advice: string;
}
export const rooms: Record<string, Room>;
export const guarded: Record<string, string[]>;
export const entryFiles: string[];
export function roomOf(file: string): string | null;
export function refusal(file: string, specifier: string, target: string): string | null;
