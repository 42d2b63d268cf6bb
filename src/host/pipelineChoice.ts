import type { PipelineView } from "./workspaceModel.ts";

/** Which seesaw.yaml a page is about: the one it was asked for while that is there, else the first that suits best. */
export class PipelineChoice {
  private readonly views: () => readonly PipelineView[];
  private readonly suits: readonly ((view: PipelineView) => boolean)[];
  private file: string | undefined;

  /** `suits`: what the page can show, the best first. */
  constructor(views: () => readonly PipelineView[], file: string | undefined, ...suits: ((view: PipelineView) => boolean)[]) {
    this.views = views;
    this.file = file;
    this.suits = suits;
  }

  /** Turns to another seesaw.yaml; undefined: stays. True where that was a change. */
  turnTo(file: string | undefined): boolean {
    if (file === undefined || file === this.file) return false;
    this.file = file;
    return true;
  }

  current(): PipelineView | undefined {
    const views = this.views();
    const named = views.find(({ uri }) => uri.fsPath === this.file);
    return this.suits.reduce<PipelineView | undefined>((found, suits) => found ?? views.find(suits), named);
  }
}
