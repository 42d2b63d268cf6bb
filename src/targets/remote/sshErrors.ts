import { t } from "../../util/l10n.ts";
import type { CallEnd, Reach } from "./station.ts";

/**
 * Why a call over ssh gave no answer, from what ssh and the shell there printed. Exit code 255 alone says nothing: ssh gives it
 * for everything of its own, and a command there can give it as well. The first rule that fits decides, so the special ones
 * come first: a jump host's failure also closes the connection, a changed key also fails the verification.
 */
export function explainSsh(host: string, python: string, { code, signal, stderr, silent }: CallEnd): Reach {
  return silent ? timedOut(host) : (known(host, python, stderr) ?? unknown(host, code, signal, stderr));
}

/** The same refusal where a key of the person's is there that only a passphrase opens: ssh does not say that it left that one out. */
export function keyIsLocked(host: string, file: string): Reach {
  return { reason: "login", message: t("{0} wants a key, and {1} needs its passphrase, which cannot be asked for here: add it to your ssh agent (ssh-add {1}), or log in once in a terminal.", host, file) };
}

/** ssh tells only that the connection to the jump host or proxy ended, not why. */
export function hidesJump(stderr: string): boolean {
  return stderr.includes("UNKNOWN port 65535");
}

function known(host: string, python: string, text: string): Reach | null {
  const has = (pattern: RegExp): RegExpExecArray | null => pattern.exec(text);
  let found: RegExpExecArray | null;
  if (has(/REMOTE HOST IDENTIFICATION HAS CHANGED|POSSIBLE DNS SPOOFING DETECTED/)) {
    const file = /Offending \S+ key in ([^\n]+):(\d+)/.exec(text);
    return {
      reason: "host-key",
      message: t("The host key of {0} is not the one that ssh knows: either the machine was set up anew, or somebody stands in between. Ask its administrator; if the new key is right, remove the old one{1} and log in once in a terminal.", host, file ? ` (${file[1]}:${file[2]})` : ""),
    };
  }
  if (has(/Host key verification failed|No \S+ host key is known for|host key .*(?:revoked|is not cached)/i)) {
    const whose = /No \S+ host key is known for (\S+)/.exec(text)?.[1] ?? host;
    return { reason: "host-key", message: t("ssh does not know the host key of {0} yet: log in once in a terminal, compare the key's fingerprint with what the administrator says, and accept it.", whose) };
  }
  if (has(/path (?:too long for Unix domain socket|"[^"\n]*" too long for Unix domain socket)|ControlPath.*too long|unix_listener:.*too long/i)) {
    return { reason: "other", message: t("The path of the shared connection to {0} is too long for a socket: shorten `ControlPath` in your ssh configuration, or set TMPDIR to a short folder.", host) };
  }
  if ((found = has(/Bad configuration option: ([^\n]+)|terminating, \d+ bad configuration options|Bad owner or permissions on ([^\n]+)|keyword (\S+) extra arguments/))) {
    return { reason: "other", message: t("Your ssh configuration has a mistake, so {0} cannot be reached: {1}", host, sentence(lineOf(text, found.index))) };
  }
  if (hidesJump(text) || has(/stdio forwarding failed|channel \d+: open failed/)) {
    const rest = text.split("\n").filter((line) => !/UNKNOWN port 65535|^kex_exchange_identification|^banner exchange/.test(line)).join("\n");
    const via = /connect to (?:host|address) (\S+) port/.exec(rest)?.[1] ?? host;
    const inner = known(via, python, rest.replace(/stdio forwarding failed|channel \d+: open failed: /g, ""));
    const why = inner?.message ?? sentence(firstLine(rest) || firstLine(text));
    return { reason: inner?.reason ?? "no-route", message: t("The way to {0} leads over a jump host or proxy, which did not let us through: {1}", host, why) };
  }
  if ((found = has(/Could not resolve hostname ([^\s:]+)/i))) {
    return { reason: "no-route", message: t("There is no machine with the name {0}: correct `host:` of this target in seesaw.yaml, add the name to your ssh configuration, or connect to the network (VPN) that knows it.", found[1] ?? host) };
  }
  if ((found = has(/Connection refused/))) {
    return { reason: "no-route", message: t("{0} refused the connection: no ssh server listens there{1}. Start one, or correct host and port in your ssh configuration.", host, portOf(text)) };
  }
  if (has(/Network is unreachable|No route to host|Host is down/)) {
    return { reason: "no-route", message: t("There is no way to {0} from here: it is down, or this machine is not in its network (VPN).", host) };
  }
  if (has(/(?:Connection|Operation) timed out|Timeout, server .*not responding|Connection to .* timed out|timeout during banner exchange/i)) return timedOut(host);
  if ((found = has(/Permission denied \(([^)]*)\)/))) return denied(host, found[1] ?? "", text);
  if (has(/Too many authentication failures/)) {
    return { reason: "refused", message: t("{0} gave up before the right key came: your agent offers too many. Name the key for it in your ssh configuration (IdentityFile, and IdentitiesOnly yes).", host) };
  }
  if (has(/sign_and_send_pubkey|agent refused operation|incorrect passphrase|Enter passphrase/i)) {
    return { reason: "login", message: t("The key for {0} needs a passphrase or a touch, which cannot be asked for here: add it to your ssh agent, or log in once in a terminal.", host) };
  }
  if (has(/This account is currently not available|account .*(?:expired|locked)|Your password has expired|You must change your password/i)) {
    return { reason: "login", message: t("{0} lets you in but starts nothing for you: your account there is locked or its password has expired. Log in once in a terminal and do what it asks.", host) };
  }
  if ((found = has(/(?:UNPROTECTED PRIVATE KEY FILE|Load key "([^"]+)": (?:bad permissions|invalid format|error in libcrypto))/))) {
    return { reason: "refused", message: t("ssh does not use your key for {0}: {1}", host, sentence(lineOf(text, found.index).replace(/[@\s]{3,}/g, ""))) };
  }
  if (has(/no matching (?:host key type|key exchange method|cipher|MAC)/i)) {
    return { reason: "other", message: t("ssh here and the ssh server of {0} have no method in common: {1}", host, sentence(firstLine(text))) };
  }
  return noPython(host, python, text) ?? closed(host, text);
}

/** What the shell there says of an interpreter that it cannot start; a Python of version 2 has no `buffer`. */
function noPython(host: string, python: string, text: string): Reach | null {
  if (/AttributeError: 'file' object has no attribute 'buffer'|SyntaxError: invalid syntax/.test(text)) {
    return { reason: "no-python", message: t("{1} on {0} is Python 2, but 3.10 or newer is needed: name another with `python:` of this target in seesaw.yaml.", host, python) };
  }
  const missing = /(?:command not found|not found|No such file or directory|Unknown command|is not recognized|Permission denied|cannot execute|Exec format error|Not a directory)/i.exec(text);
  if (missing && text.includes(python.replace(/^~\//, "").split("/").at(-1) ?? python)) {
    return { reason: "no-python", message: t("{0} has no Python that can be started as {1}: correct `python:` of this target in seesaw.yaml (its full path there).", host, python) };
  }
  return null;
}

function denied(host: string, methods: string, text: string): Reach {
  const asks = methods.split(",").filter((method) => method === "password" || method === "keyboard-interactive");
  if (/agent refused operation|sign_and_send_pubkey|incorrect passphrase/i.test(text)) {
    return { reason: "login", message: t("The key for {0} needs a passphrase or a touch, which cannot be asked for here: add it to your ssh agent, or log in once in a terminal.", host) };
  }
  if (asks.length > 0) {
    return { reason: "login", message: t("{0} wants a password, a passphrase or a second factor, which cannot be asked for here: log in once in a terminal, or set up a key (ssh-copy-id {0}).", host) };
  }
  return { reason: "refused", message: t("{0} refused your key ({1}): add your public key to ~/.ssh/authorized_keys there, start your ssh agent if the key has a passphrase, or name the right key and user in your ssh configuration.", host, methods) };
}

function timedOut(host: string): Reach {
  return { reason: "no-route", message: t("{0} does not answer: it is down, a firewall drops what is sent to it, or the link to it is cut.", host) };
}

function closed(host: string, text: string): Reach | null {
  if (/Connection (?:closed|reset)|Broken pipe|connection abort|kex_exchange_identification|ssh_exchange_identification|Control socket connect|mux_client|disconnect|Connection to \S+ closed/i.test(text)) {
    return { reason: "no-route", message: t("The connection to {0} was closed: {1}", host, sentence(firstLine(text))) };
  }
  return null;
}

function unknown(host: string, code: number | null, signal: string | null, stderr: string): Reach {
  const said = firstLine(stderr);
  if (code === 255) return { reason: "no-route", message: said === "" ? t("The connection to {0} ended without a word.", host) : t("The connection to {0} ended: {1}", host, sentence(said)) };
  const how = signal === null ? t("exit code {0}", String(code)) : t("signal {0}", signal);
  return { reason: signal === null ? "other" : "no-route", message: t("{0} gave no answer ({1}){2}", host, how, said === "" ? "." : `: ${sentence(said)}`) };
}

function portOf(text: string): string {
  const port = /connect to (?:host|address) \S+ port (\d+)/.exec(text)?.[1];
  return port === undefined ? "" : t(" at port {0}", port);
}

/** The first line that is ssh's or the shell's, not a banner's frame. */
function firstLine(text: string): string {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => /[a-z]{3}/i.test(line));
  return (lines.find((line) => /^(?:ssh|kex_|Connection|Permission|Host|mux_|channel|Load key|Bad|command-line)/i.test(line)) ?? lines.at(-1) ?? "").slice(0, 300);
}

function lineOf(text: string, at: number): string {
  const start = text.lastIndexOf("\n", at) + 1;
  const end = text.indexOf("\n", at);
  return text.slice(start, end < 0 ? undefined : end).trim().slice(0, 300);
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
