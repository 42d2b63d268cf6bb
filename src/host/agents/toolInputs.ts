import { AppError } from "../../util/errors.ts";
import { didYouMean } from "../../util/nearest.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What a tool may be asked, as package.json declares it. A model's input is never trusted: each field is checked again. */
export type FieldKinds = Readonly<Record<string, "text" | "count" | "row">>;

type Read<F extends FieldKinds> = { [K in keyof F]?: F[K] extends "text" ? string : number };

const longestText = 400;

/** Checks an input; what does not fit is a sentence that a model can correct itself by. */
export function readInput<F extends FieldKinds>(input: unknown, fields: F): Read<F> {
  if (input === undefined || input === null) return {};
  if (typeof input !== "object" || Array.isArray(input)) throw new AppError("usage", "The input is an object with named fields.");
  const read: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(input)) {
    const kind = fields[name];
    if (kind === undefined) throw new AppError("usage", `There is no input ${JSON.stringify(name)}: there are ${Object.keys(fields).join(", ")}.${didYouMean(name, Object.keys(fields))}`);
    if (value === null || value === undefined || value === "") continue;
    if (kind === "text") {
      if (typeof value !== "string" || value.length > longestText) throw new AppError("usage", `${name} is a text of at most ${longestText} characters.`);
      read[name] = value;
    } else {
      const least = kind === "row" ? 0 : 1;
      if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least) throw new AppError("usage", `${name} is a whole number from ${least}, not ${JSON.stringify(value)}.`);
      read[name] = value;
    }
  }
  return read as Read<F>;
}

/** The pipeline an agent means: by label or path; needed only where there are several. */
export function chooseView(views: readonly PipelineView[], named: string | undefined): PipelineView {
  if (views.length === 0) throw new AppError("not-found", "There is no seesaw.yaml in this workspace.");
  const labels = views.map(({ label }) => label);
  if (named === undefined) {
    const [only] = views;
    // The one at the top of the folder is what a person means by "the pipeline".
    const top = views.filter(({ label }) => !/[\\/]/.test(label));
    const chosen = views.length === 1 ? only : top.length === 1 ? top[0] : undefined;
    if (chosen !== undefined) return chosen;
    throw new AppError("usage", `There are several pipelines: name one of ${labels.join(", ")} as \`pipeline\`.`);
  }
  const found = views.find(({ label, uri, shown }) => label === named || uri.fsPath === named || (shown?.name === named && views.filter((view) => view.shown?.name === named).length === 1));
  if (found !== undefined) return found;
  throw new AppError("not-found", `There is no pipeline ${JSON.stringify(named)} in this workspace: there are ${labels.join(", ")}.${didYouMean(named, labels)}`);
}
