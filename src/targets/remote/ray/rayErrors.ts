import type { ReachReason } from "../../../protocol/remote.ts";
import { t } from "../../../util/l10n.ts";
import { ReachError } from "../reachError.ts";

/** A request that Ray, or something before it, did not answer as it should. `status` 0: no answer came. */
export class RayError extends ReachError {
  readonly status: number;

  constructor(reach: ReachReason, message: string, status: number, options?: { cause?: unknown }) {
    super(reach, message, options);
    this.status = status;
  }
}

const unverified: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "CERT_UNTRUSTED",
]);

/** What Ray says while its head is starting. */
export const noAgent = /No available agent|Failed to get head node agent/;

/** A connection that failed, as a sentence. */
export function connectionError(address: string, error: unknown): RayError {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const made = (reach: ReachReason, message: string): RayError => new RayError(reach, message, 0, { cause: error });
  if (unverified.has(code)) {
    return made("host-key", t("The certificate of {0} is signed by nobody that this machine knows. Seesaw never switches that check off: start VS Code or the command line with NODE_EXTRA_CA_CERTS set to the file of the authority that signed it.", address));
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") return made("host-key", t("The certificate of {0} is not valid today: ask whoever runs it for a new one, or set this machine's clock.", address));
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return made("host-key", t("The certificate of {0} is for another name: correct `address:` of this target in seesaw.yaml.", address));
  if (code === "EPROTO" || code.startsWith("ERR_SSL") || code === "HPE_INVALID_CONSTANT") {
    return made("other", t("{0} does not speak this protocol: try http:// for https://, or the other way round, in `address:` of this target.", address));
  }
  if (code === "ECONNREFUSED") {
    return made("no-scheduler", t("Nothing answers at {0}: either the Ray head is not running, or it runs without dashboard (`ray start --head --dashboard-host …`, with `pip install \"ray[default]\"`), or `address:` has another port.", address));
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return made("no-route", t("The name in {0} is not known here: check `address:` of this target, and whether you need a VPN.", address));
  if (code === "ETIMEDOUT" || code === "ESOCKETTIMEDOUT") return made("no-route", t("{0} gives no answer: the head is down, or the way to it is closed (VPN, firewall).", address));
  return made("no-route", t("{0} cannot be reached ({1}): the head is down, or the way to it is closed (VPN, firewall).", address, code || String((error as Error).message)));
}

/** An answer that is none, as a sentence. `token`: what was sent, to tell a missing one from a wrong one. */
export function answerError(address: string, what: string, status: number, text: string, token: string | null): RayError {
  const made = (reach: ReachReason, message: string): RayError => new RayError(reach, message, status);
  switch (status) {
    case 401:
    case 403:
      if (/expired/i.test(text) || expiredBy(token, Date.now())) return made("expired", t("The token for {0} has expired: set a new one.", address));
      return token === null
        ? made("refused", t("{0} asks for a token: set one with the command \"Seesaw: Set Ray Token\", or in SEESAW_RAY_TOKEN.", address))
        : made("refused", t("{0} refuses the token: set the right one with the command \"Seesaw: Set Ray Token\", or in SEESAW_RAY_TOKEN.", address));
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return made("login", t("{0} sends to another page, most likely one to log in: use an address that leads to the Ray dashboard itself, or a token.", address));
    case 404:
      return made("no-scheduler", t("{0} answers, but has no Jobs API: it is no Ray dashboard, or Ray was installed without it (`pip install \"ray[default]\"`).", address));
    case 413:
      return made("other", t("{0} refuses the package as too large: Ray takes at most 100 MiB. Copy large models to the cluster's own disk first.", address));
    case 502:
    case 503:
    case 504:
      return made("no-scheduler", t("{0} answers, but the Ray head behind it does not (status {1}): it is down or just starting.", address, status));
    default:
      return made(status >= 500 && noAgent.test(text) ? "no-scheduler" : "other", t("Ray at {0} could not {1} (status {2}): {3}", address, what, status, lastLine(text)));
  }
}

/** What a Python traceback, or any other long answer, comes down to. */
export function lastLine(text: string): string {
  return (text.trim().split("\n").at(-1) ?? "").trim().slice(0, 400);
}

/** Whether a token says of itself that it is over: some clusters give out JSON Web Tokens. */
export function expiredBy(token: string | null, now: number): boolean {
  try {
    const body: unknown = JSON.parse(Buffer.from(token?.split(".")[1] ?? "", "base64url").toString("utf8"));
    const end = (body as { exp?: unknown }).exp;
    return typeof end === "number" && end * 1000 < now;
  } catch {
    return false;
  }
}
