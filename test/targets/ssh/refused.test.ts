import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { ReachReason } from "../../../src/protocol/remote.ts";
import { run } from "../../../src/targets/spawn.ts";
import { reachOf } from "../../../src/targets/remote/reachError.ts";
import { AppError } from "../../../src/util/errors.ts";
import { fault } from "../shared/fault.ts";
import { Lab, python } from "../shared/lab.ts";
import { leave, repo } from "../shared/leftovers.ts";
import { SshLab, freePort } from "../shared/sshd.ts";

// Targets that cannot be used: each is said in a sentence, at once, without a prompt, and leaves nothing behind.
let ssh: SshLab;
before(async () => {
  ssh = await SshLab.open();
  const lo = await ssh.server("lo");
  const stranger = await ssh.server("stranger", { accepts: "nothing" });
  await ssh.server("password", { accepts: "password" });
  await (await ssh.server("changed")).changeHostKey();
  const { port } = await ssh.server("unknown");
  ssh.forget(port);
  ssh.extra(`Host closed\n  HostName 127.0.0.1\n  Port ${await freePort()}\n`);
  // An empty part is no name for any resolver: nobody is asked.
  ssh.extra("Host nameless\n  HostName no..such\n");
  ssh.extra(`Host locked\n  HostName 127.0.0.1\n  Port ${stranger.port}\n  IdentityFile ${await ssh.key("locked", "a passphrase")}\n`);
  // Jump hosts and proxies are the person's own settings.
  for (const jump of ["lo", "stranger", "closed"]) ssh.extra(`Host behind-${jump}\n  HostName 127.0.0.1\n  HostKeyAlias [127.0.0.1]:${lo.port}\n  Port ${lo.port}\n  ProxyJump ${jump}\n`);
  ssh.extra(`Host behind-nothing\n  HostName 127.0.0.1\n  Port ${lo.port}\n  ProxyCommand /nowhere/proxy %h %p\n`);
});
after(() => ssh.close());

/** A start on this target must fail for that reason within `seconds`; the sentence is given. */
async function refuses(box: Record<string, unknown>, reason: ReachReason, seconds = 120): Promise<{ lab: Lab; message: string }> {
  const lab = Lab.open({ kind: "ssh", ...box });
  const since = Date.now();
  try {
    await lab.start({ steps: 5 });
  } catch (error) {
    assert.equal(reachOf(error), reason, String(error));
    assert.ok(Date.now() - since < seconds * 1000, `it took ${(Date.now() - since) / 1000} s to say so`);
    assert.match((error as Error).message, /[.!]$/, "a sentence");
    await checkTells(lab, reason, (error as Error).message);
    return { lab, message: (error as Error).message };
  }
  assert.fail("the stage was started");
}

/** `seesaw targets check` says the same before anything is asked for, and ends with exit code 1. */
async function checkTells(lab: Lab, reason: ReachReason, message: string): Promise<void> {
  const { code, stdout, stderr } = await run([process.execPath, join(repo, "src/cli.ts"), "targets", "check", "box", "--json"], { cwd: lab.root, timeout: 180_000 });
  assert.equal(code, 1, stderr);
  const { ok, targets } = JSON.parse(stdout) as { ok: boolean; targets: { problems: { reason: string; message: string }[] }[] };
  assert.equal(ok, false);
  assert.ok(targets[0]?.problems.some((problem) => problem.reason === reason && problem.message === message), `${message}\n${stdout}`);
}

const cases: [string, string, ReachReason, RegExp][] = [
  ["nobody listens there", "closed", "no-route", /closed/],
  ["key refused", "stranger", "refused", /key/i],
  ["host key changed", "changed", "host-key", /host key|key of/i],
  ["host key unknown", "unknown", "host-key", /host key|key of/i],
  ["no machine of that name", "nameless", "no-route", /no machine with the name no\.\.such: correct `host:`/],
  ["key that needs its passphrase", "locked", "login", /needs its passphrase.*ssh-add/],
  ["jump host refuses the key", "behind-stranger", "refused", /jump host or proxy.*refused your key/],
  ["jump host is down", "behind-closed", "no-route", /jump host or proxy.*refused the connection/],
  ["proxy command that is not there", "behind-nothing", "no-route", /jump host or proxy.*\/nowhere\/proxy/],
];
for (const [name, host, reason, says] of cases) {
  fault("ssh", name, async ({ nothingStarted }) => {
    const { lab, message } = await refuses({ host }, reason);
    try {
      assert.match(message, says);
      await nothingStarted(lab);
    } finally {
      await lab.close();
    }
  });
}

fault("ssh", "password would be asked for", async ({ nothingStarted }) => {
  const { lab, message } = await refuses({ host: "password" }, "login");
  try {
    assert.match(message, /password|log in/i);
    await nothingStarted(lab);
  } finally {
    await lab.close();
  }
});

fault("ssh", "over a jump host of the person's own settings", async ({ judge }) => {
  const lab = Lab.open({ kind: "ssh", host: "behind-lo" });
  try {
    const { id } = await lab.start({ steps: 5 });
    await lab.window();
    await judge(lab, id, { status: "done", step: 5 });
  } finally {
    await lab.close();
  }
});

fault("ssh", "host without an answer", async ({ nothingStarted }) => {
  // An address of the test networks that has no cable: the unreachable route answers, nothing leaves this machine.
  const route = await run(["ip", "route", "add", "unreachable", "10.99.0.0/16", "metric", "4000"], { timeout: 10_000 });
  assert.ok(route.code === 0 || /exists/i.test(route.stderr), route.stderr);
  const { lab } = await refuses({ host: "root@10.99.251.9" }, "no-route");
  try {
    await nothingStarted(lab);
  } finally {
    await lab.close();
  }
}, { skip: process.getuid?.() === 0 ? null : "the route that holds packets back needs root" });

fault("ssh", "no Python there", async ({ nothingStarted }) => {
  const { lab, message } = await refuses({ host: "lo", python: "/nowhere/bin/python" }, "no-python");
  try {
    assert.match(message, /\/nowhere\/bin\/python/);
    await nothingStarted(lab);
  } finally {
    await lab.close();
  }
});

fault("ssh", "Python too old", async ({ nothingStarted }) => {
  const old = join(ssh.dir, "python3.6");
  // `-u -c STATEMENT` of the station, by a Python that says it is 3.6.
  writeFileSync(old, `#!/bin/sh\nshift; shift\nexec ${python} -u -c "import sys; sys.version_info = (3, 6, 9, 'final', 0); sys.version = '3.6.9 (old)'; $1"\n`);
  chmodSync(old, 0o755);
  const { lab, message } = await refuses({ host: "lo", python: old }, "no-python");
  try {
    assert.match(message, /3\.6/);
    await nothingStarted(lab);
  } finally {
    await lab.close();
  }
});

fault("ssh", "folder that cannot be written", async ({ nothingStarted }) => {
  const dir = join(tmpdir(), `sw-ro-${process.pid}`);
  mkdirSync(dir, { recursive: true });
  const folder = leave({ kind: "folder", path: dir });
  const mount = leave({ kind: "mount", path: dir });
  assert.equal((await run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", dir], { timeout: 10_000 })).code, 0);
  try {
    const { lab, message } = await refuses({ host: "lo", dir: join(dir, "seesaw") }, "not-writable");
    assert.ok(message.includes(dir), message);
    await nothingStarted(lab);
    await lab.close();
  } finally {
    await mount();
    await folder();
  }
}, { skip: process.getuid?.() === 0 ? null : "a read-only disk needs root to be mounted" });

test("what a shell would read is refused in targets, before anything is called", async () => {
  const marker = join(ssh.dir, "marker");
  const calls = ssh.words().length;
  const evil: Record<string, unknown>[] = [
    { host: `lo; touch ${marker}` }, { host: `$(touch ${marker})` }, { host: `-oProxyCommand=touch ${marker}` }, { host: `lo\ntouch ${marker}` }, { host: "" },
    { host: "lo", python: `python3; touch ${marker}` }, { host: "lo", python: `$(touch ${marker})` }, { host: "lo", python: "`touch x`" }, { host: "lo", python: "../python" },
    { host: "lo", dir: `/tmp/x;touch ${marker}` }, { host: "lo", dir: "/tmp/../etc" }, { host: "lo", dir: "relative" }, { host: "lo", dir: "~root/x" }, { host: "lo", dir: "/tmp/a b" }, { host: "lo", dir: "/tmp/$HOME" },
  ];
  const lab = Lab.open({ kind: "ssh", host: "lo" });
  const fine = { ...lab.box };
  try {
    for (const box of evil) {
      Object.assign(lab.box, fine, box);
      await assert.rejects(lab.start(), (error: unknown) => {
        assert.ok(AppError.is(error, "bad-pipeline"), `${JSON.stringify(box)}: ${String(error)}`);
        return true;
      });
    }
    assert.deepEqual(await lab.runs(), []);
  } finally {
    await lab.close();
  }
  assert.equal(ssh.words().length, calls, "ssh was called");
  assert.equal(existsSync(marker), false);
});

fault("ssh", "metacharacters in names, words and variables", async ({ judge }) => {
  const marker = join(ssh.dir, "marker2");
  const words = ["{python}", "train.py", `$(touch ${marker})`, `; touch ${marker} #`, "`id`", "a'b\"c\\d", "--x=|&<>*?~", "line\nbreak", "ünïcode 字"];
  const lab = Lab.open({ kind: "ssh", host: "lo" }, { run: words, stage: { env: { EVIL: `$(touch ${marker}); 'x' "y"` } } });
  try {
    const { id } = await lab.start({ steps: 5 });
    await lab.window();
    await judge(lab, id, { status: "done", step: 5 });
    assert.equal(existsSync(marker), false);
    assert.deepEqual((JSON.parse(lab.read(id, "run.json")) as { options: { run: string[] } }).options.run, words);
    // ssh itself never sees any of it: what reaches the far shell is the interpreter and a constant.
    const seen = ssh.words();
    assert.ok(seen.length > 10);
    for (const word of seen) assert.ok(!word.includes(id) && !word.includes(marker) && !word.includes("ünïcode"), word);
  } finally {
    await lab.close();
  }
});
