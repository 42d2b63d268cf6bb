import http from "node:http";
import https from "node:https";
import { BlockList, connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { t } from "../../../util/l10n.ts";
import { RayError } from "./rayErrors.ts";

/**
 * The proxy of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, with every Node: only the newest ones look at these variables
 * themselves. What they hold may be a password, so only host and port of it are ever shown. The agents are our own:
 * https-proxy-agent 9 holds the certificate of `https://10.1.2.3` against `localhost`, and waits for ever for a proxy that says
 * nothing; http-proxy-agent prints the token where DEBUG is set; proxy-from-env 2 knows no networks, and speaks TLS to `proxy:3128`.
 */

const silenceMs = 30_000;

/** How a cluster is reached. */
export interface Way {
  /** Of requests; undefined: whoever runs us gives one. */
  agent: http.Agent | undefined;
  /** Of websockets, which no proxy passes on by itself. */
  tunnel: http.Agent | undefined;
  /** What a request line begins with: a proxy wants the whole address there. */
  before: string;
  headers: Record<string, string>;
  /** `proxy:3128`; null: none is in between. */
  proxy: string | null;
}

/**
 * Where VS Code finds the proxy (`http.proxySupport`): in the extension host it puts agents of its own into every request, by
 * `http.proxy`, `http.noProxy`, the environment and the system, read anew each time. What we added for a proxy of ours, its
 * login above all, would reach whomever VS Code asks.
 */
export const editorsWay: Way = { agent: undefined, tunnel: undefined, before: "", headers: {}, proxy: null };

/** RayError("other") where the variable holds no address of an HTTP proxy. */
export function wayTo(address: string, env: NodeJS.ProcessEnv): Way {
  const secure = address.startsWith("https:");
  const proxy = proxyOf(new URL(address), env);
  if (proxy === null) {
    const agent = secure ? new https.Agent({ keepAlive: true }) : new http.Agent({ keepAlive: true });
    return { agent, tunnel: agent, before: "", headers: {}, proxy: null };
  }
  const headers = credentials(proxy);
  if (secure) {
    const agent = new SecureTunnel(address, proxy);
    return { agent, tunnel: agent, before: "", headers: {}, proxy: proxy.host };
  }
  return { agent: new Forwarding(proxy), tunnel: new Tunnel(address, proxy), before: address, headers, proxy: proxy.host };
}

/** The proxy for an address; null: straight there. This machine itself is never asked of a proxy, whose own it would be. */
export function proxyOf(address: URL, env: NodeJS.ProcessEnv): URL | null {
  const variable = (...names: string[]): [string, string] | null => {
    for (const name of names.flatMap((one) => [one.toLowerCase(), one])) if ((env[name] ?? "").trim() !== "") return [name, (env[name] ?? "").trim()];
    return null;
  };
  const found = variable(address.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY", "ALL_PROXY");
  if (found === null || isLoopback(address) || isExcepted(address, variable("NO_PROXY")?.[1] ?? "")) return null;
  const [name, text] = found;
  const url = parsed(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  if (url === null || url.hostname === "") throw new RayError("other", t("The variable {0} holds no address of a proxy: correct it (`http://host:port`), or put {1} into NO_PROXY.", name, address.host), 0);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new RayError("other", t("The variable {0} names a proxy of the kind `{1}`, and Seesaw can use only HTTP proxies: name one, or put {2} into NO_PROXY.", name, url.protocol.slice(0, -1), address.host), 0);
  }
  return url;
}

function parsed(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

const bare = (host: string): string => host.replace(/^\[|\]$/g, "");

function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || bare(hostname) === "::1" || (isIP(hostname) === 4 && hostname.startsWith("127."));
}

/** As curl and Python read NO_PROXY: names with all below them, addresses, networks (10.0.0.0/8), each with or without a port, or `*`. */
function isExcepted({ hostname, port, protocol }: URL, list: string): boolean {
  const host = bare(hostname);
  const own = port || (protocol === "https:" ? "443" : "80");
  return list.toLowerCase().split(/[\s,]+/).filter(Boolean).some((entry) => {
    if (entry === "*") return true;
    const [, prefix, bits] = /^(.+)\/(\d{1,3})$/.exec(entry) ?? [];
    if (prefix !== undefined) return inNetwork(host, bare(prefix), Number(bits));
    const [, named = entry, at] = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(entry) ?? [];
    if (at !== undefined && at !== own) return false;
    const name = bare(named).replace(/^\*?\.+/, "");
    return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
  });
}

function inNetwork(host: string, prefix: string, bits: number): boolean {
  const family = isIP(prefix);
  if (family === 0 || isIP(host) !== family || bits > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  const kind = family === 4 ? "ipv4" : "ipv6";
  list.addSubnet(prefix, bits, kind);
  return list.check(host, kind);
}

function credentials(proxy: URL): Record<string, string> {
  if (proxy.username === "" && proxy.password === "") return {};
  const login = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(login).toString("base64")}` };
}

function placeOf(proxy: URL): { host: string; port: number } {
  return { host: bare(proxy.hostname), port: Number(proxy.port || (proxy.protocol === "https:" ? 443 : 80)) };
}

function toProxy(proxy: URL): Socket {
  const at = placeOf(proxy);
  return proxy.protocol === "https:" ? connectTls({ ...at, ...(isIP(at.host) === 0 && { servername: at.host }) }) : connect(at);
}

type Done = (error: Error | null, stream: Duplex) => void;
const none = undefined as unknown as Duplex;

/** Connects to the proxy instead of to who is named. */
class Forwarding extends http.Agent {
  private readonly proxy: URL;

  constructor(proxy: URL) {
    super({ keepAlive: true });
    this.proxy = proxy;
  }

  override createConnection(): Duplex {
    return toProxy(this.proxy);
  }
}

/** Connects through the proxy: it passes on every byte. */
class Tunnel extends http.Agent {
  private readonly address: string;
  private readonly proxy: URL;

  constructor(address: string, proxy: URL) {
    super({ keepAlive: false });
    this.address = address;
    this.proxy = proxy;
  }

  override createConnection(_options: unknown, callback?: Done): null {
    throughProxy(this.address, this.proxy).then((socket) => callback?.(null, socket), (error: Error) => callback?.(error, none));
    return null;
  }
}

class SecureTunnel extends https.Agent {
  private readonly address: string;
  private readonly proxy: URL;

  constructor(address: string, proxy: URL) {
    super({ keepAlive: true });
    this.address = address;
    this.proxy = proxy;
  }

  /** `options` hold what VS Code adds to every https request: the system's certificates. */
  override createConnection(options: ConnectionOptions, callback?: Done): null {
    const { hostname } = new URL(this.address);
    throughProxy(this.address, this.proxy).then((socket) => {
      const secure = connectTls({ ...options, socket, host: bare(hostname), ...(isIP(bare(hostname)) === 0 && { servername: hostname }) });
      callback?.(null, secure);
    }, (error: Error) => callback?.(error, none));
    return null;
  }
}

/** A socket to the cluster that the proxy has opened. */
function throughProxy(address: string, proxy: URL): Promise<Socket> {
  const { hostname, port, protocol } = new URL(address);
  const at = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  return new Promise((resolve, reject) => {
    const ask = proxy.protocol === "https:" ? https.request : http.request;
    const request = ask({ ...placeOf(proxy), method: "CONNECT", path: at, headers: { host: at, ...credentials(proxy) }, agent: false, timeout: silenceMs });
    request.on("connect", (answer, socket, head) => {
      if (answer.statusCode === 200) {
        if (head.length > 0) socket.unshift(head);
        socket.setTimeout(0);
        return resolve(socket as Socket);
      }
      socket.destroy();
      reject(refusedBy(address, proxy.host, answer.statusCode ?? 0));
    });
    request.on("timeout", () => request.destroy(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" })));
    request.on("error", (error) => reject(proxyDown(address, proxy.host, error)));
    request.end();
  });
}

/** The proxy answered, and did not open the way. */
function refusedBy(address: string, proxy: string, status: number): RayError {
  if (status === 407) return proxyLogin(address, status);
  if (status === 502 || status === 503 || status === 504) {
    return new RayError("no-route", t("The proxy {1} found no way to {0} (status {2}): the head is down, or it should be reached without a proxy; then put it into NO_PROXY (in VS Code: `http.noProxy`).", address, proxy, status), status);
  }
  return new RayError("refused", t("The proxy {1} does not let you go to {0} (status {2}): put it into NO_PROXY (in VS Code: `http.noProxy`) if it can be reached without, or ask who runs the proxy.", address, proxy, status), status);
}

/** The proxy wants to know who asks. */
export function proxyLogin(address: string, status: number): RayError {
  return new RayError("refused", t("The proxy between here and {0} asks for a login: put it into HTTPS_PROXY (in VS Code: `http.proxy`), or {0} into NO_PROXY (`http.noProxy`).", address), status);
}

/** The proxy itself cannot be reached. */
export function proxyDown(address: string, proxy: string, error: unknown): RayError {
  const why = (error as NodeJS.ErrnoException).code ?? String((error as Error).message);
  return new RayError("no-route", t("The proxy {1}, over which {0} would be reached, does not answer ({2}): correct HTTP_PROXY or HTTPS_PROXY (in VS Code: `http.proxy`), or put {0} into NO_PROXY (`http.noProxy`).", address, proxy, why), 0, { cause: error });
}

/** As `proxyDown`, where VS Code's own agent says so; null: it is something else. What it says may hold a password, and is not kept. */
export function editorsProxyDown(address: string, error: unknown): RayError | null {
  const [, where] = /socket connection to proxies: \w+ (?:\S*@)?([^\s;@]+)/.exec(String((error as Error).message)) ?? [];
  return where === undefined ? null : proxyDown(address, where, new Error(t("no connection")));
}

/** The address of a proxy as VS Code's agents tell it with a request (`PROXY me:pw@proxy:3128`), without the login; null: none. */
export function namedProxy(said: unknown): string | null {
  const place = String(said ?? "").replace(/\/$/, "").replace(/^.*[\s/@]/, "");
  return place === "" || place === "DIRECT" ? null : place;
}
