import assert from "node:assert/strict";
import { test } from "node:test";
import { copyText } from "../../../../src/domain/targets/copyText.ts";
import { dryRunText, type DryRun } from "../../../../src/domain/targets/dryRunText.ts";

const run: DryRun = {
  commands: [{ what: "Submit the job", argv: ["sbatch", "--parsable", "/s/my run/job.sh"] }],
  files: [
    { local: "/w/data/math.jsonl", remote: "/s/objects/aa/math.jsonl", bytes: 1_500_000, there: false },
    { local: "/w/models/m0", remote: "/s/models/bb", bytes: 812, there: true },
  ],
  script: "#!/bin/sh\n#SBATCH --gres=gpu:1\n",
  notes: ["No time limit is asked for."],
};

test("a dry run as a page: notes, files with sizes, commands, and the script word for word", () => {
  assert.equal(
    dryRunText("math", "cluster (login1)", run),
    `Dry run of math on cluster (login1)
Nothing was started and nothing was copied.

* No time limit is asked for.

== 2 files, 1.5 MB: 1.5 MB would be copied ==
to copy   1.5 MB  /w/data/math.jsonl
  → /s/objects/aa/math.jsonl
is there   812 B  /w/models/m0
  → /s/models/bb

== Commands, in this order ==
1. Submit the job
   sbatch --parsable '/s/my run/job.sh'

== Job script ==
#!/bin/sh
#SBATCH --gres=gpu:1
`,
  );
});

test("what is there already, or cannot be told, is never called a copy", () => {
  assert.match(dryRunText("math", "x", { ...run, files: run.files.map((file) => ({ ...file, there: true })) }), /== 2 files, 1\.5 MB: all of it is there already ==/);
  assert.match(dryRunText("math", "x", { ...run, files: run.files.map((file) => ({ ...file, there: null })) }), /up to 1\.5 MB would be copied, less what is there already ==\nunless there/);
  const bare = dryRunText("math", "this machine", { commands: [], files: [], script: null, notes: [] });
  assert.equal(bare, "Dry run of math on this machine\nNothing was started and nothing was copied.\n");
});

test("a copy tells how far it is, where that can be counted", () => {
  assert.equal(copyText("math.jsonl", 12_000_000, 30_000_000), "math.jsonl: 12 MB of 30 MB");
  assert.equal(copyText("checking the stage there", 0, 0), "checking the stage there");
});
