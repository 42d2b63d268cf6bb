/** Where the code writes what happened. Implementations: a VS Code output channel, the CLI's stderr, memory in tests. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
