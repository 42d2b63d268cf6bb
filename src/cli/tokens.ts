import type { Command } from "commander";
import { formatDrift, formatNumber } from "../domain/format.ts";
import { probeSetName } from "../domain/run/flagText.ts";
import type { FilmFrame, Filmstrip } from "../domain/drift/filmstrip.ts";
import type { TokenClass } from "../domain/drift/tokenClasses.ts";
import { startReference, type ProbeSet } from "../domain/drift/driftSelection.ts";
import { checkReference, driftOfSet, filmOf, mostDrifted, probeSets, skillOf, withTraces, type PromptFilm, type PromptPlace } from "../domain/report/scoredChain.ts";
import { AppError } from "../util/errors.ts";
import { promptText } from "../domain/drift/promptText.ts";
import { againstHelp, noteUnreadable, readScores, type ScoredChain } from "./chainData.ts";
import type { ContextOf } from "./context.ts";
import { oneLine, textWidth, type Output } from "./output.ts";

interface TokensOptions {
  skill?: string;
  split?: string;
  against: string;
}

export function addTokens(program: Command, contextOf: ContextOf): void {
  program
    .command("tokens")
    .argument("[prompt]", "`skill.split:line` as `seesaw drift` prints it, or the start of a row hash; default: the most drifted prompt")
    .description("one prompt's reference answer, token by token, under every checkpoint")
    .option("--skill <skill>", "only look among this skill's prompts")
    .option("--split <id|ood>", "only look among in-domain or OOD prompts")
    .option("--against <reference>", againstHelp, "own")
    .addHelpText("after", "\nA token is kept (still the most likely one), weakened (rank 2–3, or much less likely) or lost (rank 4 and below).\nOnly what fell by more than the rescoring noise is marked.\n\nExamples:\n  seesaw tokens\n  seesaw tokens math.id:12 --against M1\n  seesaw tokens 3fa9c1 --json")
    .action(async (named: string | undefined, options: TokensOptions, command: Command) => {
      const context = contextOf(command);
      const data = await readScores(context.services, await context.pipeline());
      const against = checkReference(data.chain, options.against, "--against");
      const prompt = named === undefined ? defaultPrompt(data, options, against) : findPrompt(data, named, options);
      const found = filmOf(data, prompt, against);
      if (context.json) context.out.json({ v: 1, skill: found.skill, split: found.split, against: found.against, ...found.film });
      else context.out.print(tokensText(found, context.out));
      noteUnreadable(data, context.out);
    });
}

function defaultPrompt(data: ScoredChain, options: TokensOptions, against: string): PromptPlace {
  const sets = probeSets(data.pipeline, options.skill, options.split).map((set) => driftOfSet(data, set, against));
  const worst = mostDrifted(sets);
  if (worst) return { skill: worst.skill, split: worst.split, hash: worst.row.hash, occurrence: 0 };
  throw new AppError("not-found", "No two comparable checkpoints have been scored yet: run a stage first.");
}

function findPrompt(data: ScoredChain, named: string, options: TokensOptions): PromptPlace {
  const place = /^(.+?)(?:\.(id|ood))?:(\d+)$/.exec(named);
  if (place) {
    const { id } = skillOf(data.pipeline, place[1] ?? "");
    return promptIn(data, probeSets(data.pipeline, id, place[2] ?? "id"), (probe) => probe.line === Number(place[3]), named);
  }
  const sets = probeSets(data.pipeline, options.skill, options.split);
  if (/^\d+$/.test(named) && options.skill !== undefined) return promptIn(data, sets, (probe) => probe.line === Number(named), named);
  if (!/^[0-9a-f]{4,64}$/.test(named)) throw new AppError("usage", `A prompt is named \`skill.split:line\`, such as \`math.id:12\`, or by the first letters of its row hash; \`${named}\` is neither.`);
  return promptIn(data, sets, (probe) => probe.hash.startsWith(named), named);
}

function promptIn(data: ScoredChain, sets: readonly ProbeSet[], wanted: (probe: { line: number; hash: string }) => boolean, named: string): PromptPlace {
  const found: PromptPlace[] = [];
  for (const { skill, split } of sets) {
    const probes = withTraces(data, { skill, split }, ({ readers, problems }) => {
      const reader = [...readers.values()][0];
      for (const problem of reader === undefined ? problems.values() : []) throw new AppError("trace-unreadable", problem);
      return reader?.probes() ?? [];
    });
    for (const probe of probes.filter(wanted)) {
      const copies = probes.filter(({ hash, status }) => hash === probe.hash && status === "ok");
      if (probe.status === "skipped") throw new AppError("not-found", `${skill}.${split}:${probe.line} was not scored: ${probe.reason ?? "it was skipped."}`);
      found.push({ skill, split, hash: probe.hash, occurrence: copies.indexOf(probe) });
    }
  }
  const hashes = new Set(found.map(({ hash }) => hash));
  if (hashes.size > 1) throw new AppError("usage", `Several prompts match \`${named}\`: give more letters of the hash.`);
  if (found[0]) return found[0];
  throw new AppError("not-found", `No scored prompt matches \`${named}\`: \`seesaw drift\` lists them.`);
}

/** The prompt, and its reference answer once per checkpoint with the tokens marked. */
export function tokensText({ skill, split, film, against }: PromptFilm, out: Output): string {
  const { probe, frames } = film;
  const what = against === startReference ? "the start of each stage" : against;
  const lines = [
    `${out.paint("bold", `${probeSetName(skill, split)}, line ${probe.line}`)}  ${out.paint("dim", `${probe.hash.slice(0, 12)}  against ${what}`)}`,
    `${out.paint("dim", "prompt   ")} ${oneLine(promptText(probe.prompt), out.width - 12)}`,
    "",
    ...frames.flatMap((frame) => frameText(frame, film, out)),
    "",
    legend(out),
  ];
  return lines.join("\n");
}

function frameText(frame: FilmFrame, { tokens, probe }: Filmstrip, out: Output): string[] {
  const check = frame.correct === null ? " " : frame.correct ? out.paint("green", "✓") : out.paint("red", "✗");
  const head = `${out.paint("bold", frame.label.padEnd(3))} ${check} ${frame.delta === null ? "     –" : formatDrift(frame.delta).padStart(6)}  `;
  if (frame.cells === null) return [`${head}${out.paint("dim", frame.why ?? "not scored")}`];
  const indent = " ".repeat(textWidth(head));
  const lines: string[] = [head];
  let used = indent.length;
  frame.cells.forEach((cell, index) => {
    const token = tokens[index];
    if (!token) return;
    const text = mark(token.terminator ? "⏎" : token.display.replaceAll("·", " "), cell.coloured ? cell.class : "kept", out);
    const width = textWidth(text);
    if (used + width > out.width && used > indent.length) {
      lines.push(indent);
      used = indent.length;
    }
    lines[lines.length - 1] += text;
    used += width;
  });
  if (frame.generated !== null && frame.generated.trim() !== probe.reference.trim()) {
    lines.push(`${indent}${out.paint("dim", `writes: ${oneLine(frame.generated, out.width - indent.length - 8)}`)}`);
  }
  return lines;
}

/** Background and underline together, so that the classes differ without colours too; brackets where there is neither. */
function mark(text: string, kind: TokenClass, out: Output): string {
  if (kind === "kept") return text;
  if (!out.colour) return kind === "weakened" ? `‹${text}›` : `«${text}»`;
  return kind === "weakened" ? out.paint(["bgYellow", "black", "underline"], text) : out.paint(["bgRed", "whiteBright", "doubleunderline"], text);
}

function legend(out: Output): string {
  const noise = "only falls beyond the rescoring noise are marked";
  return `${out.paint("dim", "legend   ")} kept  ${mark("weakened", "weakened", out)}  ${mark("lost", "lost", out)}  ${out.paint("dim", `(${noise}; the number is the change of the answer's log-probability in nats, e.g. ${formatNumber(-1.5)})`)}`;
}
