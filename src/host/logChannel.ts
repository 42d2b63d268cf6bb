import * as vscode from "vscode";
import { outputChannelName } from "../ids.ts";
import type { Log } from "../util/log.ts";

/** The extension's log, as an output channel with levels. */
export interface LogChannel extends Log {
  show(): void;
  dispose(): void;
}

/** Creates the channel. */
export function createLogChannel(): LogChannel {
  const channel = vscode.window.createOutputChannel(outputChannelName, { log: true });
  return {
    debug: (message) => channel.debug(message),
    info: (message) => channel.info(message),
    warn: (message) => channel.warn(message),
    error: (message) => channel.error(message),
    show: () => channel.show(true),
    dispose: () => channel.dispose(),
  };
}
