import type { FromArenaPage, ToArenaPage } from "../../src/domain/arena/arenaPage.ts";
import { vscodeEndpoint } from "../vscodeEndpoint.ts";

/** The page's only way out: messages to the host. */
export interface ArenaEndpoint {
  post(message: FromArenaPage): void;
  onMessage(run: (message: ToArenaPage) => void): void;
}

/** This page's endpoint inside VS Code: that of the drift page with other messages. */
export function arenaEndpoint(): ArenaEndpoint {
  return vscodeEndpoint() as unknown as ArenaEndpoint;
}
