// One place for what set-up prints: a line per step with its elapsed time, rewritten on a terminal,
// repeated every ten seconds elsewhere. Node's own modules only: this runs before `npm ci`, under Node 20.
import { spawn } from "node:child_process";

const tty = process.stdout.isTTY === true && process.env.TERM !== "dumb";
const colour = tty && !process.env.NO_COLOR;
const paint = (code, text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);

/** An end that is explained by one sentence; everything else is a defect of ours and keeps its stack. */
export class SetupError extends Error {}

/** Prints the sentence of a SetupError (or the stack of anything else) and ends with the environment's exit code. */
export function failWith(error) {
  if (error instanceof SetupError) console.error(`\n${paint("31", "✗")} ${error.message}`);
  else console.error(error);
  process.exit(5);
}

export function say(text) {
  console.log(`${paint("2", "·")} ${text}`);
}

export function done(text) {
  console.log(`${paint("32", "✓")} ${text}`);
}

export function seconds(since) {
  const s = (Date.now() - since) / 1000;
  return s < 10 ? `${s.toFixed(1)} s` : s < 120 ? `${Math.round(s)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

/** A live line: `note` says what is being done now; `end` leaves one finished line. */
export function liveLine(label) {
  const start = Date.now();
  let note = "";
  let last = "";
  const draw = () => {
    const text = `${label}  ${seconds(start)}${note ? `  ${note}` : ""}`;
    if (tty) process.stdout.write(`\r\u001b[2K${paint("36", "…")} ${text.slice(0, (process.stdout.columns ?? 100) - 3)}`);
    else if (text !== last) console.log(`… ${text}`);
    last = text;
  };
  draw();
  const timer = setInterval(draw, tty ? 200 : 10_000);
  const clear = () => {
    clearInterval(timer);
    if (tty) process.stdout.write("\r\u001b[2K");
  };
  return {
    note(text) {
      note = text;
    },
    end(text) {
      clear();
      done(`${text ?? label}  ${paint("2", seconds(start))}`);
    },
    fail() {
      clear();
    },
  };
}

/**
 * Runs a program with a live line. `pick` turns an output line into a short note (or nothing). The last 60 lines
 * are kept and printed only when it fails, in front of the sentence `problem(text, code)` gives.
 */
export async function runStep(label, argv, { cwd, env, pick = () => undefined, problem, finished } = {}) {
  const line = liveLine(label);
  const tail = [];
  const child = spawn(argv[0], argv.slice(1), { cwd, env: env ?? process.env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const text of lines) {
        tail.push(text);
        if (tail.length > 60) tail.shift();
        const note = pick(text);
        if (note) line.note(note);
      }
    });
  }
  const code = await new Promise((resolve) => {
    child.on("error", (error) => {
      tail.push(error.message);
      resolve(127);
    });
    child.on("close", (exit, signal) => resolve(exit ?? `signal ${signal}`));
  });
  if (code !== 0) {
    line.fail();
    const text = tail.join("\n");
    console.error(text);
    throw new SetupError(problem?.(text, code) ?? `\`${argv.join(" ")}\` ended with ${code}; its last lines are above.`);
  }
  line.end(finished);
  return tail.join("\n");
}
