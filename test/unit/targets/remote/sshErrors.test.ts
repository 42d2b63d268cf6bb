import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { needsPassphrase, socketFolder, SshCommand, stationWords } from "../../../../src/targets/remote/sshCommand.ts";
import { explainSsh } from "../../../../src/targets/remote/sshErrors.ts";
import { AppError } from "../../../../src/util/errors.ts";

const at = (stderr: string, more: { code?: number | null; signal?: string | null; silent?: boolean; python?: string } = {}) =>
  explainSsh("gpu-box", more.python ?? "~/envs/trl/bin/python", { code: more.code === undefined ? 255 : more.code, signal: more.signal ?? null, stderr, silent: more.silent ?? false });

/** What OpenSSH and shells printed, the reason, and what the sentence must name. Exit code 255 for all of ssh's own. */
const said: [string, string, RegExp][] = [
  ["ssh: Could not resolve hostname nosuch.invalid: Name or service not known", "no-route", /name nosuch\.invalid: correct `host:`/],
  ["ssh: connect to host 127.0.0.1 port 22742: Connection refused", "no-route", /refused the connection.*at port 22742/],
  ["ssh: connect to host 10.99.1.2 port 2222: No route to host", "no-route", /no way to gpu-box/],
  ["ssh: connect to host 10.99.1.2 port 2222: Network is unreachable", "no-route", /no way to gpu-box/],
  ["ssh: connect to host 10.99.1.2 port 2222: Connection timed out", "no-route", /does not answer/],
  ["Timeout, server 10.99.1.2 not responding.", "no-route", /does not answer/],
  ["client_loop: send disconnect: Broken pipe", "no-route", /was closed/],
  ["kex_exchange_identification: read: Connection reset by peer\nConnection reset by 127.0.0.1 port 22", "no-route", /was closed/],
  ["root@127.0.0.1: Permission denied (publickey).", "refused", /authorized_keys/],
  ["me@box: Permission denied (publickey,password).", "login", /log in once in a terminal/],
  ["me@box: Permission denied (publickey,keyboard-interactive).", "login", /second factor/],
  ["sign_and_send_pubkey: signing failed for ED25519 \"/k\" from agent: agent refused operation\nme@box: Permission denied (publickey).", "login", /passphrase or a touch/],
  ["Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures", "refused", /IdentitiesOnly/],
  ["No ED25519 host key is known for [127.0.0.1]:22741 and you have requested strict checking.\nHost key verification failed.", "host-key", /does not know the host key of \[127\.0\.0\.1\]:22741/],
  ["Host key verification failed.", "host-key", /does not know the host key of gpu-box/],
  [
    "@@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@@@@\nIT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nOffending ED25519 key in /home/me/.ssh/known_hosts:7\nHost key verification failed.",
    "host-key",
    /is not the one that ssh knows.*\/home\/me\/\.ssh\/known_hosts:7/,
  ],
  ["unix_listener: path \"/tmp/aaa\" too long for Unix domain socket", "other", /ControlPath/],
  ["/home/me/.ssh/config: line 3: Bad configuration option: hostnme\n/home/me/.ssh/config: terminating, 1 bad configuration options", "other", /config: line 3: Bad configuration option: hostnme/],
  ["Bad owner or permissions on /home/me/.ssh/config", "other", /Bad owner or permissions/],
  ["ssh: connect to host jump port 22: Connection refused\nkex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535", "no-route", /jump host or proxy.*jump refused the connection.*port 22/],
  ["Host key verification failed.\nkex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535", "host-key", /does not know the host key/],
  ["channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\nConnection closed by UNKNOWN port 65535", "no-route", /jump host or proxy/],
  ["me@jump: Permission denied (publickey).\nConnection closed by UNKNOWN port 65535", "refused", /jump host or proxy.*refused your key/],
  ["Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa", "other", /no method in common/],
  ["This account is currently not available.", "login", /locked or its password has expired/],
];

test("what ssh prints becomes a reason, and a sentence that names the machine and the fix", () => {
  for (const [stderr, reason, sentence] of said) {
    const reach = at(stderr);
    assert.equal(reach.reason, reason, `${stderr}\n→ ${reach.message}`);
    assert.match(reach.message, sentence, stderr);
    assert.match(reach.message, /[.]$/);
  }
});

test("a banner decides nothing", () => {
  const banner = "*****\nWelcome! A password is required. No unauthorised access.\n*****\n";
  assert.equal(at(`${banner}root@127.0.0.1: Permission denied (publickey).`).reason, "refused");
  assert.equal(at(`${banner}ssh: connect to host b port 22: Connection refused`).reason, "no-route");
});

test("exit code 255 alone says nothing but that the connection ended; a command's own end is told as such", () => {
  assert.deepEqual(at(""), { reason: "no-route", message: "The connection to gpu-box ended without a word." });
  assert.equal(at("", { code: null, signal: "SIGKILL" }).reason, "no-route");
  assert.deepEqual(at("", { code: 3 }), { reason: "other", message: "gpu-box gave no answer (exit code 3)." });
  assert.match(at("anything", { silent: true }).message, /does not answer/);
});

test("a Python that is missing, no program, or of version 2 is the Python's fault, not the connection's", () => {
  for (const [stderr, code] of [
    ["bash: line 1: /root/envs/trl/bin/python: No such file or directory", 127],
    ["sh: 1: python: not found", 127],
    ["zsh:1: no such file or directory: /root/envs/trl/bin/python", 127],
    ["fish: Unknown command: /root/envs/trl/bin/python", 127],
    ["bash: line 1: /root/envs/trl/bin/python: Permission denied", 126],
    ["sh: 1: /x/python: Exec format error", 126],
  ] as const) assert.equal(at(stderr, { code }).reason, "no-python", stderr);
  const two = at("Traceback (most recent call last):\nAttributeError: 'file' object has no attribute 'buffer'", { code: 1 });
  assert.equal(two.reason, "no-python");
  assert.match(two.message, /Python 2/);
});

test("hosts and interpreters that a shell or ssh would read otherwise are refused", () => {
  for (const host of ["-oProxyCommand=touch x", "a b", "a;b", "$(id)", "", "a\nb", "`id`"]) assert.throws(() => new SshCommand(host), (error) => AppError.is(error, "bad-pipeline"));
  for (const python of ["python; id", "$(id)", "a b", "../python", "x/../y", "-c", "'p'", "p\nq", "~/a|b", "p&", "%COMSPEC%"]) assert.throws(() => stationWords(python), (error) => AppError.is(error, "bad-pipeline"), python);
  assert.equal(stationWords("~/envs/trl/bin/python3.11"), '~/envs/trl/bin/python3.11 -u -c "import sys;exec(sys.stdin.buffer.readline())"');
});

test("the command: no question, no terminal, nothing about host keys, a short private folder for its socket", async () => {
  const argv = await new SshCommand("gpu-box", ["ssh", "-F", "/dev/null"]).stationArgv("python3");
  assert.deepEqual(argv.slice(0, 3), ["ssh", "-F", "/dev/null"]);
  assert.deepEqual(argv.slice(-3), ["--", "gpu-box", 'python3 -u -c "import sys;exec(sys.stdin.buffer.readline())"']);
  const text = argv.join(" ");
  assert.match(text, /-T .*BatchMode=yes.*ConnectTimeout=\d+.*ServerAliveInterval=5.*ControlMaster=auto.*ControlPath=\S+\/%C/);
  assert.doesNotMatch(text, /HostKey|KnownHosts|-tt|-A\b/i);
  assert.equal(statSync(socketFolder()).mode & 0o777, 0o700);
  assert.ok(socketFolder().length + 1 + 40 + 17 < 104);
  const login = await new SshCommand("gpu-box", ["ssh", "-F", "/dev/null"]).loginArgv();
  assert.doesNotMatch(login.join(" "), /BatchMode|-T /);
  assert.ok(argv.includes(login.find((word) => word.startsWith("ControlPath=")) ?? ""), "a login in a terminal opens the connection that is shared");
});

test("a key that needs a passphrase is known by its file", () => {
  const dir = mkdtempSync(join(tmpdir(), "seesaw-keys-"));
  try {
    for (const [name, type, passphrase, format] of [["a", "ed25519", "", []], ["b", "ed25519", "secret", []], ["c", "rsa", "secret", ["-m", "PEM"]], ["d", "rsa", "", ["-m", "PEM"]]] as const) {
      execFileSync("ssh-keygen", ["-q", "-t", type, ...format, "-N", passphrase, "-f", join(dir, name)]);
      assert.equal(needsPassphrase(join(dir, name)), passphrase !== "", `${type} ${format.join(" ")}`);
    }
    assert.equal(needsPassphrase(join(dir, "none")), false);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
