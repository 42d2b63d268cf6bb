import { sweep } from "./shared/leftovers.ts";
import { dropHoldBack, noNamespaces } from "./shared/net.ts";

// Takes back what crashed or stopped tests have left; `npm run test:targets` does it before and after.
const found = await sweep();
for (const text of found) console.log(`Taken back: ${text}`);
if ((await noNamespaces()) === null) await dropHoldBack();
