import { noRay } from "./ray/head.ts";
import { noSshd } from "./shared/sshd.ts";
import { missing } from "./slurm/cluster.ts";

// Prints, by part of the tests, why it is impossible on this machine, or null: `npm run test:targets` leaves it out, loudly.
const asked: Record<string, () => Promise<string | null> | string | null> = { ssh: noSshd, faults: noSshd, slurm: () => missing(), ray: noRay };

const answers: Record<string, string | null> = {};
for (const name of process.argv.slice(2)) answers[name] = (await asked[name]?.())?.replace(/^LEFT OUT: /, "") ?? null;
console.log(JSON.stringify(answers));
