import type { ChainRun } from "../../domain/run/chain.ts";
import type { FlagFacts, ReplayFact } from "../../domain/run/flagCard.ts";
import type { FlagRecord } from "../../domain/run/runState.ts";
import { messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";

/**
 * What replay did for the rows that a flag names. That is in the run's buffer, its ledger and a trace, for which SQLite is loaded:
 * so it is read when somebody looks at the flag, once for each change of it. `changed` is called when more is known.
 */
export class ReplayFacts {
  private readonly read: (runs: readonly ChainRun[]) => Promise<FlagFacts>;
  private readonly changed: () => void;
  private readonly log: Log;
  private readonly known = new Map<string, { at: string; facts: FlagFacts | null; reading: Promise<void> }>();

  constructor(read: (runs: readonly ChainRun[]) => Promise<FlagFacts>, changed: () => void, log: Log) {
    this.read = read;
    this.changed = changed;
    this.log = log;
  }

  /** What is known now; undefined while it is not. */
  of(run: ChainRun, flag: FlagRecord): ReplayFact | undefined {
    const known = this.known.get(run.dir);
    return known?.at === stateOf(run) ? known.facts?.replay(run, flag) : undefined;
  }

  /** Somebody looks at a flag of the run. Resolves when what can be known is. */
  look(run: ChainRun): Promise<void> {
    if (run.spec.replay == null) return Promise.resolve();
    const at = stateOf(run);
    const before = this.known.get(run.dir);
    if (before?.at === at) return before.reading;
    const reading = this.read([run]).then(
      (facts) => {
        if (this.known.get(run.dir)?.at !== at) return;
        this.known.set(run.dir, { at, facts, reading });
        this.changed();
      },
      (error: unknown) => this.log.warn(`${run.id}: what replay did for its flags cannot be told: ${messageOf(error)}`),
    );
    this.known.set(run.dir, { at, facts: null, reading });
    return reading;
  }
}

function stateOf({ state }: ChainRun): string {
  return JSON.stringify(state.flags.map(({ id, step, state: is }) => [id, step, is]));
}
