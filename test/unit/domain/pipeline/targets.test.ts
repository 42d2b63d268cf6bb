import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import { limitSeconds } from "../../../../src/domain/pipeline/targetSettings.ts";

const file = (targets: string, stage = "on: t", second = ""): string => `seesaw: 1
base: models/m0
skills:
  math: { probes: p.jsonl, check: { kind: text } }
stages:
  - { id: math, recipe: sft, data: a.jsonl, ${stage} }
${second}targets:
  t: ${targets}
`;
const ssh = "{ kind: ssh, host: gpu-box, dir: ~/seesaw }";
const slurm = (resources: string): string => `{ kind: slurm, host: me@login1, dir: /shared/me/seesaw/, resources: ${resources} }`;

function problems(text: string): string[] {
  return parsePipeline(text, "/p/seesaw.yaml").diagnostics.map(({ range, severity, message }) => `${range.line}:${range.column} ${severity === "error" ? "" : `${severity}: `}${message}`);
}

function settings(targets: string, stage?: string) {
  const { pipeline, diagnostics } = parsePipeline(file(targets, stage), "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  return { target: pipeline?.targets.find(({ id }) => id === "t"), stage: pipeline?.stages[0] };
}

test("the three kinds of other machines, with their defaults", () => {
  assert.deepEqual(settings(ssh).target, { id: "t", kind: "ssh", host: "gpu-box", python: "python3", dir: "~/seesaw" });
  assert.equal(settings(ssh).stage?.resources, undefined);
  assert.deepEqual(settings("{ kind: slurm, dir: /s, python: ~/envs/trl/bin/python }").target, { id: "t", kind: "slurm", host: null, python: "~/envs/trl/bin/python", dir: "/s", resources: {} });
  assert.deepEqual(settings("{ kind: ray, address: \"http://head:8265/\", dir: /s, resources: { gpus: 1, cpus: 4 } }").target, { id: "t", kind: "ray", address: "http://head:8265", python: "python3", dir: "/s", resources: { gpus: 1, cpus: 4 } });
});

test("a stage's resources come on top of its target's, and nodes tell the launch", () => {
  const { target, stage } = settings(slurm("{ partition: gpu, gpus: 1, time: 04:00:00, args: [--exclusive, \"--mail-user=a b\"] }"), "on: t, launch: { kind: torchrun, processes: 4 }, resources: { gpus: 4, nodes: 2, time: 90 }");
  assert.equal(target?.kind === "slurm" && target.dir, "/shared/me/seesaw");
  assert.deepEqual(stage?.resources, { partition: "gpu", gpus: 4, nodes: 2, time: "90", args: ["--exclusive", "--mail-user=a b"] });
  assert.deepEqual(stage?.launch, { kind: "torchrun", processes: 4, nodes: 2 });
  assert.equal(settings(slurm("{ gpus: 1 }")).stage?.launch.nodes, undefined);
});

test("time limits as sbatch reads them", () => {
  for (const [text, seconds] of [["90", 5400], ["04:00:00", 14_400], ["1-00", 86_400], ["2-01:30", 178_200], ["1-02:03:04", 93_784]] as const) assert.equal(limitSeconds(text), seconds, text);
});

const cases: [string, string, RegExp][] = [
  ["unknown kind", file("{ kind: shh, host: a, dir: /s }"), /^8:14 "kind" of target "t" is "shh", which is not known\. Did you mean "ssh"\? Known: local, ssh, slurm, ray\.$/],
  ["no kind", file("{ host: a, dir: /s }"), /^8:3 Target "t" has no "kind"\. Known: local, ssh, slurm, ray\.$/],
  ["ssh without a host", file("{ kind: ssh, dir: /s }"), /^8:3 Target "t" has no "host": add it\. A name of your ssh configuration/],
  ["ssh without a folder", file("{ kind: ssh, host: a }"), /^8:3 Target "t" has no "dir": add it\. The folder there/],
  ["unknown field", file("{ kind: ssh, host: a, dri: /s, dir: /s }"), /^8:28 Unknown key "dri" in target "t"\. Did you mean "dir"\?$/],
  ["unknown resource", file(slurm("{ gpu: 1 }")), /Unknown key "gpu" in "resources" of target "t"\. Did you mean "gpus"\?$/],
  ["resources of ssh", file("{ kind: ssh, host: a, dir: /s, resources: { gpus: 1 } }"), /Unknown key "resources" in target "t"\. Known keys: kind, host, dir, python\.$/],
  ["an option as host", file("{ kind: ssh, host: \"-oProxyCommand=x\", dir: /s }"), /"host" of target "t" is "-oProxyCommand=x"\. Write a name of your ssh configuration, or user@host/],
  ["a command as host", file("{ kind: ssh, host: \"a;reboot\", dir: /s }"), /"host" of target "t" is "a;reboot"/],
  ["a substitution as folder", file("{ kind: ssh, host: a, dir: \"/s/$(reboot)\" }"), /"dir" of target "t" is .* so that no shell there can misread it\./],
  ["a line break in the folder", file("{ kind: ssh, host: a, dir: \"/s\\nreboot\" }"), /"dir" of target "t"/],
  ["a folder upwards", file("{ kind: ssh, host: a, dir: ~/../other }"), /"dir" of target "t" is "~\/\.\.\/other"/],
  ["a relative folder", file("{ kind: ssh, host: a, dir: seesaw }"), /Write an absolute path on that machine, or one that begins with ~\//],
  ["the root folder", file("{ kind: ssh, host: a, dir: / }"), /"dir" of target "t" is "\/"/],
  ["a colon in the folder", file("{ kind: ssh, host: a, dir: \"/a:b\" }"), /"dir" of target "t" is "\/a:b"/],
  ["a command line as Python", file("{ kind: ssh, host: a, dir: /s, python: \"python3 -c x\" }"), /"python" of target "t" is "python3 -c x"\. Write an absolute path/],
  ["an assignment as Python", file("{ kind: ssh, host: a, dir: /s, python: \"A=/x\" }"), /"python" of target "t"/],
  ["a relative Python", file("{ kind: ssh, host: a, dir: /s, python: .venv/bin/python }"), /"python" of target "t"/],
  ["a password in the address", file("{ kind: ray, address: \"http://me:pw@head:8265\", dir: /s }"), /without a user name or password in it\.$/],
  ["no scheme", file("{ kind: ray, address: \"head:8265\", dir: /s }"), /"address" of target "t" is "head:8265"\. Write the dashboard's address/],
  ["minutes and seconds", file(slurm("{ time: \"04:00\" }")), /"resources\.time" of target "t" is "04:00"\. Write hours, minutes and seconds \("04:00:00"\)/],
  ["no time", file(slurm("{ time: 0 }")), /"resources\.time" of target "t" is 0\./],
  ["memory without a unit", file(slurm("{ memory: 32 }")), /"resources\.memory" of target "t" is 32\. Write a whole number and a unit/],
  ["a quote in the constraint", file(slurm("{ constraint: \"a'b\" }")), /"resources\.constraint" of target "t"/],
  ["too many GPUs", file(slurm("{ gpus: 65 }")), /"resources\.gpus" of target "t" must be at most 64, but it is 65\.$/],
  ["a word that is no option", file(slurm("{ args: [reboot] }")), /"resources\.args\.0" of target "t" is "reboot"\. Each word begins with "--"/],
  ["a word of Seesaw's own", file(slurm("{ args: [\"--comment=x\"] }")), /--comment is what Seesaw itself says to sbatch/],
  ["local as another machine", file(ssh).replace("  t:", "  local:").replace("on: t", "on: local"), /^8:3 "local" is always this machine/],
  ["resources on ssh", file(ssh, "on: t, resources: { gpus: 1 }"), /Stage "math" asks for resources, but runs on "t", where no scheduler shares them out/],
  ["resources at home", file(ssh, "resources: { gpus: 1 }"), /Stage "math" asks for resources, but runs on "local"/],
  ["more processes than GPUs", file(slurm("{ gpus: 2 }"), "on: t, launch: { kind: torchrun, processes: 4 }"), /^6:\d+ Stage "math" starts 4 processes on each node, each with a GPU of its own, but asks for 2/],
  ["several nodes, one Python", file(slurm("{ gpus: 4, nodes: 2 }")), /Stage "math" asks for 2 nodes, but only torchrun starts processes on several: write "launch: \{ kind: torchrun, processes: 4 \}"/],
  ["saved before it began", file(slurm("{ time: 2 }")), /may run for 120 s and is told to save 120 s before that/],
  ["Ray and nodes", file("{ kind: ray, address: \"http://h:1\", dir: /s, resources: { nodes: 2 } }"), /A stage on Ray runs on one node, but "t" asks for 2/],
  ["Ray and a partition", file("{ kind: ray, address: \"http://h:1\", dir: /s }", "on: t, resources: { partition: x }"), /"partition" means something to Slurm only, but "t" is a Ray cluster/],
];

for (const [name, text, expected] of cases) {
  test(`refused with a sentence at its place: ${name}`, () => {
    const found = problems(text);
    assert.equal(found.length, 1, found.join("\n") || "nothing was said");
    assert.match(found[0] ?? "", expected);
  });
}

test("nodes of a command of one's own are its own affair", () => {
  assert.deepEqual(problems(file(slurm("{ nodes: 2 }"), "on: t").replace("recipe: sft, data: a.jsonl", "recipe: command, options: { run: [srun, x], checkpoints: \"o/*\" }")), []);
});
