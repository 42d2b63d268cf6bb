/** When the extension's code began to run. Imported first, so that loading our own modules counts as activation. */
const began = { wall: performance.now(), cpu: cpuUsage() };

/** Milliseconds since then; `cpuMs` tells how much of it this thread worked, on a machine that others keep busy. */
export interface ActivationTime {
  wallMs: number;
  cpuMs: number;
}

export function activationTime(): ActivationTime {
  const { user, system } = cpuUsage(began.cpu);
  return { wallMs: performance.now() - began.wall, cpuMs: (user + system) / 1000 };
}

/** Of this thread where Node can tell (from 23.9 on), else of the whole process. */
function cpuUsage(before?: NodeJS.CpuUsage): NodeJS.CpuUsage {
  return typeof process.threadCpuUsage === "function" ? process.threadCpuUsage(before) : process.cpuUsage(before);
}
