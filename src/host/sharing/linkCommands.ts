import * as vscode from "vscode";
import { scoredCheckpoints } from "../../domain/drift/driftSelection.ts";
import { emptySelection, type DriftSelection } from "../../protocol/webview.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import { resolveSelection } from "../drift/driftChoices.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { formatLink, parseLink, type DriftLink } from "./link.ts";
import { resolveLink, type Folder } from "./resolveLink.ts";

/** What links need of the host. */
export interface LinkHost {
  model: WorkspaceModel;
  drift: { readonly selection: DriftSelection; show(selection?: Partial<DriftSelection>): Promise<void> };
  scores: { traces(): Promise<TraceStore> };
  log: Log;
  ready: Promise<void>;
}

const extensionId = "seesaw.seesaw";

/** Opens `vscode://seesaw.seesaw/open?…` links: shows a place in Token Drift, and never starts or changes anything. */
export class LinkHandler implements vscode.UriHandler {
  private readonly host: () => LinkHost;

  constructor(host: () => LinkHost) {
    this.host = host;
  }

  async handleUri(uri: vscode.Uri): Promise<void> {
    await this.open(uri);
  }

  /** Resolves with what was shown, or with the sentence that says why nothing was. */
  async open(uri: Pick<vscode.Uri, "path" | "query">): Promise<{ selection: Partial<DriftSelection> } | { refused: string }> {
    const host = this.host();
    try {
      const link = parseLink(uri);
      await host.ready;
      const { selection, notes } = await resolveLink(link, host.model.views(), folders(), () => host.scores.traces());
      await host.drift.show(selection);
      for (const note of notes) void vscode.window.showInformationMessage(note);
      return { selection };
    } catch (error) {
      // Anybody can make a link: what it does wrong is told, but it is no failure of ours.
      host.log.warn(`A link was not opened: ${messageOf(error)}`);
      void vscode.window.showWarningMessage(vscode.l10n.t("Seesaw did not open the link. {0}", messageOf(error)));
      return { refused: messageOf(error) };
    }
  }
}

/** Copies a link to what Token Drift shows. */
export async function copyLink(host: LinkHost): Promise<void> {
  await host.ready;
  const link = currentLink(host);
  await vscode.env.clipboard.writeText(formatLink(vscode.env.uriScheme, extensionId, link));
  void vscode.window.showInformationMessage(vscode.l10n.t("Copied a link to {0}. Whoever has this folder open, with its runs, sees the same.", `${link.skill ?? ""}.${link.split ?? "id"}`));
}

function currentLink({ model, drift }: LinkHost): DriftLink {
  const shown = drift.selection;
  const { resolved } = resolveSelection(model.views(), { ...emptySelection, ...shown });
  if (resolved === null) throw new AppError("not-found", vscode.l10n.t("There is nothing to link to yet: open a folder with a seesaw.yaml."));
  const { view, chain, skill, split, reference } = resolved;
  const last = scoredCheckpoints(chain, { skill, split }).findLast(({ run, stage }) => run !== null && stage !== null)?.run;
  return {
    pipeline: vscode.workspace.asRelativePath(view.uri).replaceAll("\\", "/"),
    ...(last == null ? {} : { run: last.id }),
    ...(last == null ? {} : { checkpoint: reference }),
    skill,
    split,
    ...(shown.row === null ? {} : { row: shown.row }),
  };
}

function folders(): Folder[] {
  return (vscode.workspace.workspaceFolders ?? []).map(({ name, uri }) => ({ name, path: uri.fsPath }));
}
