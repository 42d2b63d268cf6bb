/**
 * How long our own code takes to be ready. It is two pieces, loading and `activate`, and between them the extension host
 * does other extensions' work: they are measured apart and added.
 */
export interface ActivationTime {
  wallMs: number;
  /** How much of it this thread worked, on a machine that others keep busy. */
  cpuMs: number;
}

interface Moment {
  wall: number;
  cpu: NodeJS.CpuUsage;
}

// Imported first, so that evaluating our other modules counts.
const loading = now();
let loaded: ActivationTime = { wallMs: 0, cpuMs: 0 };

/** Called once when all modules have been evaluated. */
export function endOfLoading(): void {
  loaded = since(loading);
}

/** Starts the second piece; what it returns gives the sum of both. */
export function startOfActivate(): () => ActivationTime {
  const began = now();
  return () => {
    const activate = since(began);
    return { wallMs: loaded.wallMs + activate.wallMs, cpuMs: loaded.cpuMs + activate.cpuMs };
  };
}

function now(): Moment {
  return { wall: performance.now(), cpu: cpuUsage() };
}

function since(moment: Moment): ActivationTime {
  const { user, system } = cpuUsage(moment.cpu);
  return { wallMs: performance.now() - moment.wall, cpuMs: (user + system) / 1000 };
}

/** Of this thread where Node can tell (from 23.9 on), else of the whole process. */
function cpuUsage(before?: NodeJS.CpuUsage): NodeJS.CpuUsage {
  return typeof process.threadCpuUsage === "function" ? process.threadCpuUsage(before) : process.cpuUsage(before);
}
