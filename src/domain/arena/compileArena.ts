import { fromName } from "../run/chain.ts";
import { bufferIdOf, type RawBuffer, type RawStage } from "../pipeline/pipelineDefaults.ts";
import type { Pipeline, Stage } from "../pipeline/pipelineModel.ts";
import { AppError } from "../../util/errors.ts";
import type { Arena, Remedy } from "./arenaModel.ts";
import { rawBuffer, reachedFrom } from "./chainNeeds.ts";

/** What is compared: the chain itself, or what a remedy made of it. */
export interface ArenaSystem {
  id: string;
  /** For people: `replay 10 %`, `distillation, reverse KL`. */
  title: string;
  kind: Remedy["kind"] | "chain";
  /** The stage whose last checkpoint is judged. */
  end: string;
  /** Stages that only this system needs, in order. */
  own: string[];
  /** Stages that it needs and others too: specialists, experts, the chain. */
  shared: string[];
  /** Of a merge: the remedy whose sensitivity curve this is a point of, and its weight. */
  sweep: { of: string; weight: number } | null;
}

export interface CompiledArena {
  systems: ArenaSystem[];
  stages: RawStage[];
  buffers: Record<string, RawBuffer>;
}

/** How many optimizer steps a remedy's training may take in all. `stages`: those that it trains, with the chain's own steps. */
export type StepsOf = (remedy: string, stages: readonly { id: string; steps: number }[]) => number[];

/** As many optimizer steps as the chain: the budget where the file names none. */
export const chainSteps: StepsOf = (_, stages) => stages.map(({ steps }) => steps);

/** Arguments that mean the same to every trainer: what a remedy takes over from the chain's last stage. */
const common = new Set([
  "learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps", "warmup_ratio", "per_device_train_batch_size", "gradient_accumulation_steps",
  "gradient_checkpointing", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm", "optim", "logging_steps", "bf16", "fp16", "tf32",
  "use_cpu", "train_sampling_strategy", "group_by_length",
]);
/** Recipes that can mix rows of a buffer into their batches. */
const replaying = new Set(["sft", "self-distill", "oracle-sft", "experts"]);

/**
 * The chain and every remedy as the stages of one pipeline, for one seed: the arena is run by what runs any chain. `mix` is
 * the file with rows of all skills, each naming its skill in `data_source`. `stepsOf` scales remedies to the budget.
 * AppError("bad-pipeline") where the chain cannot be compared at all.
 */
export function compileArena(pipeline: Pipeline, arena: Arena, mix: string, stepsOf: StepsOf = chainSteps): CompiledArena {
  return new Compiler(pipeline, arena, mix, stepsOf).compile();
}

class Compiler {
  private readonly pipeline: Pipeline;
  private readonly arena: Arena;
  private readonly mix: string;
  private readonly stepsOf: StepsOf;
  /** The chain's stages that teach a skill: in order, the last is the new skill. */
  private readonly taught: (Stage & { data: string })[];
  private readonly chain: Stage[];
  private readonly stages: RawStage[] = [];
  private readonly buffers: CompiledArena["buffers"] = {};

  constructor(pipeline: Pipeline, arena: Arena, mix: string, stepsOf: StepsOf) {
    this.pipeline = pipeline;
    this.arena = arena;
    this.mix = mix;
    this.stepsOf = stepsOf;
    this.chain = chainOf(pipeline);
    const skills = new Set(pipeline.skills.map(({ id }) => id));
    this.taught = this.chain.filter((stage): stage is Stage & { data: string } => skills.has(stage.id) && stage.data !== null);
    if (this.taught.length < 2) throw new AppError("bad-pipeline", `The arena compares ways to keep old skills, so ${pipeline.file} needs at least two stages that each teach the skill of their name: ${this.taught.length === 0 ? "it has none" : `only "${this.taught[0]?.id}" does`}.`);
    const unknown = this.chain.find((stage) => !(stepsIn(stage) > 0));
    if (unknown !== undefined) throw new AppError("bad-pipeline", `The arena needs to know how long the stage "${unknown.id}" is: write max_steps under its args.`);
  }

  compile(): CompiledArena {
    const stages = this.pipeline.stages.map((stage) => this.raw(stage));
    const buffers = Object.fromEntries(this.pipeline.buffers.map((buffer) => [buffer.id, rawBuffer(buffer, this.pipeline)]));
    // The chain, and what it needs besides; in the order of the file, in which a stage follows what it starts from.
    const needed = reachedFrom(this.chain.map(({ id }) => id), stages, buffers);
    this.stages.push(...stages.filter(({ id }) => needed.has(id)));
    const used = new Set(this.stages.map((stage) => bufferIdOf(stage)));
    for (const [id, buffer] of Object.entries(buffers)) if (used.has(id)) this.buffers[id] = buffer;
    const chain = this.chain.map(({ id }) => id);
    const systems: ArenaSystem[] = [{ id: "chain", title: "the chain, no remedy", kind: "chain", end: chain.at(-1) ?? "", own: chain, shared: [], sweep: null }];
    for (const remedy of this.arena.remedies) systems.push(...this.systemsOf(remedy, chain));
    const offChain = [...needed].filter((id) => !chain.includes(id));
    return { systems: systems.map((system) => ({ ...system, shared: [...system.shared, ...this.besides(system, offChain)] })), stages: this.stages, buffers: this.buffers };
  }

  /** Which of the stages off the chain a system needs. */
  private besides({ own, shared }: ArenaSystem, offChain: readonly string[]): string[] {
    const reached = reachedFrom([...own, ...shared], this.stages, this.buffers);
    return offChain.filter((id) => reached.has(id));
  }

  private systemsOf(remedy: Remedy, chain: readonly string[]): ArenaSystem[] {
    const system = (title: string, own: string[], shared: readonly string[]): ArenaSystem => ({ id: remedy.id, title, kind: remedy.kind, end: own.at(-1) ?? "", own, shared: [...shared], sweep: null });
    switch (remedy.kind) {
      case "replay":
        return [system(`replay ${percent(remedy.ratio)}`, this.replayed(remedy), [])];
      case "joint":
        return [system("joint training", [this.add(this.over(remedy, "sft", null, { balance: "data_source" }))], [])];
      case "self-distill":
        return [system("self-distillation", [this.add(this.over(remedy, "self-distill", chain.at(-1) ?? null, { domain_field: "data_source", ...this.rollout() }))], chain)];
      case "oracle-sft":
        return [system("oracle SFT", [this.add(this.over(remedy, "oracle-sft", chain.at(-1) ?? null, { oracles: this.bySkill(), ...this.rollout() }))], [...chain, ...this.specialists()])];
      case "distill":
        return [system(`distillation, ${remedy.loss.replace("-kl", " KL").replace("kl", "KL")}`, [this.add(this.over(remedy, "distill", chain.at(-1) ?? null, { teachers: this.bySkill(), loss: remedy.loss, ...this.rollout() }))], [...chain, ...this.specialists()])];
      case "merge":
        return this.merges(remedy, chain);
      case "experts":
        return [this.routed(remedy, "experts and router", null)];
      case "together":
        return [this.routed(remedy, `replay ${percent(remedy.ratio)}, experts and router`, { ratio: remedy.ratio, rows: remedy.rows })];
    }
  }

  // ---- the kinds

  /** A stage of the chain. What another one forks from has to be saved in the arena, too. */
  private raw(stage: Stage): RawStage {
    const forked = this.chain.some(({ from, fromStep }) => from === stage.id && fromStep != null);
    return { ...rawStage(stage), ...(forked && stage.save_every !== null && { save_every: stage.save_every }) };
  }

  /** The chain once more, every stage after the first with a buffer of the ones before it. */
  private replayed(remedy: Remedy & { kind: "replay" }): string[] {
    const steps = this.budgeted(remedy.id, this.chain);
    const names = new Map<string, string>();
    return this.chain.map((stage, place) => {
      const from = this.chain.slice(0, place).filter(({ data }) => data !== null).map((earlier) => names.get(earlier.id) ?? "");
      // Nothing is replayed yet in the first stage: where it is as long as the chain's, it is the chain's.
      const same = from.length === 0 && steps[place] === stepsIn(stage) && Object.keys(remedy.args).length === 0 && stage.replay === null;
      const id = same ? stage.id : `${remedy.id}-${stage.id}`;
      names.set(stage.id, id);
      if (same) return id;
      const raw: RawStage = { ...withoutReplay(this.raw(stage)), id, args: { ...stage.args, ...remedy.args, max_steps: steps[place] ?? 1 } };
      raw.from = stage.from === null ? "base" : (fromName({ ...stage, from: names.get(stage.from) ?? stage.from }) ?? "base");
      if (from.length > 0 && replaying.has(stage.recipe)) raw.replay = { buffer: this.buffer(`${id}-buffer`, from, remedy.rows), ratio: remedy.ratio };
      return this.add(raw);
    });
  }

  private merges(remedy: Remedy & { kind: "merge" }, chain: readonly string[]): ArenaSystem[] {
    const models = remedy.of === "chain" ? this.chain.map(({ id }) => id) : this.taught.map(({ id }) => this.specialist(id));
    const shared = remedy.of === "chain" ? chain : [...chain, ...this.specialists()];
    const weights = [remedy.weight, ...remedy.sweep.filter((weight) => weight !== remedy.weight)];
    return weights.map((weight, place) => {
      const id = place === 0 ? remedy.id : `${remedy.id}-w${String(weight).replace(".", "_")}`;
      const options = { method: remedy.method, models, ...(weight !== null && { weight }), ...(remedy.density !== null && { density: remedy.density }), ...remedy.options };
      const end = this.add({ ...this.shell(true), id, recipe: "merge", from: chain.at(-1) ?? "base", options });
      const title = `merge, ${remedy.method}${remedy.of === "chain" ? " of M1 to the end" : ""}${weight === null ? "" : `, weight ${weight}`}`;
      return { id, title, kind: "merge" as const, end, own: [end], shared: [...shared], sweep: remedy.sweep.length === 0 || weight === null ? null : { of: remedy.id, weight } };
    });
  }

  /** One expert for each skill, and the router over them. */
  private routed(remedy: Remedy & { kind: "experts" | "together" }, title: string, replay: { ratio: number; rows: number } | null): ArenaSystem {
    const steps = this.budgeted(remedy.id, this.taught);
    const experts = this.taught.map((stage, place) => {
      const id = `${remedy.id}-${stage.id}`;
      const others = this.taught.filter((other) => other !== stage).map((other) => other.id);
      const raw: RawStage = { ...rawStage(stage), id, recipe: "experts", from: "base", args: { ...stage.args, ...remedy.args, max_steps: steps[place] ?? 1 }, adapter: remedy.adapter };
      if (replay !== null) raw.replay = { buffer: this.buffer(`${id}-buffer`, others, replay.rows), ratio: replay.ratio };
      return this.add(raw);
    });
    const options = { experts: Object.fromEntries(this.taught.map((stage, place) => [stage.id, experts[place] ?? ""])), max_new_tokens: this.longest(), ...remedy.options };
    const router = this.add({ ...this.shell(true), id: `${remedy.id}-router`, recipe: "router", data: this.mix, from: "base", options });
    return { id: remedy.id, title, kind: remedy.kind, end: router, own: [...experts, router], shared: [], sweep: null };
  }

  // ---- parts

  /** A stage on the mixture of all skills, as long as the budget allows. */
  private over(remedy: Remedy, recipe: string, from: string | null, options: Record<string, unknown>): RawStage {
    const [steps = 1] = this.budgeted(remedy.id, [{ id: remedy.id, steps: total(this.chain) }]);
    const args = Object.fromEntries(Object.entries(this.chain.at(-1)?.args ?? {}).filter(([name]) => common.has(name)));
    return { ...this.shell(), id: remedy.id, recipe, data: this.mix, from: from ?? "base", args: { ...args, ...remedy.args, max_steps: remedy.args["max_steps"] ?? steps }, options: { ...options, ...remedy.options } };
  }

  /** Each skill's specialist: the chain's own stage, but from the base. They are shared by the remedies that need teachers. */
  private specialists(): string[] {
    return this.taught.map((stage) => {
      const id = this.specialist(stage.id);
      if (id === stage.id) return id; // the chain begins with it
      if (!this.stages.some((one) => one.id === id)) this.add({ ...withoutReplay(rawStage(stage)), id, from: "base" });
      return id;
    });
  }

  private specialist(skill: string): string {
    const stage = this.taught.find(({ id }) => id === skill);
    return stage?.from === null && stage.replay === null ? skill : `specialist-${skill}`;
  }

  private bySkill(): Record<string, string> {
    this.specialists();
    return Object.fromEntries(this.taught.map(({ id }) => [id, this.specialist(id)]));
  }

  private rollout(): Record<string, unknown> {
    return { max_new_tokens: this.longest() };
  }

  private longest(): number {
    return Math.max(...this.chain.map(({ probe }) => probe.max_new_tokens));
  }

  private budgeted(id: string, stages: readonly (Stage | { id: string; steps: number })[]): number[] {
    return this.stepsOf(id, stages.map((stage) => ({ id: stage.id, steps: "steps" in stage ? stage.steps : stepsIn(stage) }))).map((steps) => Math.max(1, Math.round(steps)));
  }

  private buffer(id: string, from: readonly string[], rows: number): string {
    this.buffers[id] = { from: [...from], rows };
    return id;
  }

  /** What every stage of this chain has: where it runs. `alone`: in one process, as merges and routers do. */
  private shell(alone = false): Pick<RawStage, "on" | "resources" | "env" | "launch"> {
    const last = this.chain.at(-1);
    if (last === undefined) return {};
    const { nodes: _, ...one } = last.resources ?? {};
    return { on: last.on, env: last.env, ...placeOf(alone ? { launch: { kind: "python", processes: 1 }, ...(last.resources !== undefined && { resources: { ...one, nodes: 1 } }) } : last) };
  }

  private add(stage: RawStage): string {
    if (this.stages.some(({ id }) => id === stage.id)) throw new AppError("bad-pipeline", `The arena would have two stages called "${stage.id}": give the remedy or the stage another id.`);
    this.stages.push(stage);
    return stage.id;
  }
}

/** The chain that ends with the last trained stage of the file: what the remedies are compared with. */
export function chainOf(pipeline: Pick<Pipeline, "stages">): Stage[] {
  const path: Stage[] = [];
  let next = pipeline.stages.findLast(({ recipe }) => !["merge", "router", "experts", "command"].includes(recipe));
  while (next !== undefined) {
    path.unshift(next);
    const { from } = next;
    next = from === null ? undefined : pipeline.stages.find(({ id }) => id === from);
  }
  return path;
}

function stepsIn(stage: Stage): number {
  return Number(stage.args["max_steps"] ?? 0);
}

function total(stages: readonly Stage[]): number {
  return stages.reduce((sum, stage) => sum + stepsIn(stage), 0);
}

function withoutReplay(stage: RawStage): RawStage {
  const { replay: _, ...rest } = stage;
  return rest;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** How many processes on how many machines, as the file writes it: the nodes among the resources. */
function placeOf({ launch: { nodes: _, ...launch }, resources = {} }: Pick<Stage, "launch" | "resources">): Pick<RawStage, "launch" | "resources"> {
  return { launch, ...(Object.keys(resources).length > 0 && { resources }) };
}

/** A stage as the file would have it. Probing is the arena's: only the ends are looked at. */
function rawStage(stage: Stage): RawStage {
  return {
    id: stage.id,
    recipe: stage.recipe,
    ...(stage.data !== null && { data: stage.data }),
    args: stage.args,
    ...(Object.keys(stage.options).length > 0 && { options: stage.options }),
    ...(stage.adapter !== null && { adapter: stage.adapter }),
    ...placeOf(stage),
    ...(stage.replay !== null && { replay: stage.replay }),
    from: fromName(stage) ?? "base",
    on: stage.on,
    env: stage.env,
  };
}
