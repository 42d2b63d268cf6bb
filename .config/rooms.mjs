// Which room may import what: the table of CONTRIBUTING as data. Read by the lint rules and by the architecture test.
// `rooms`: other rooms. `ports`: single files of other rooms. `packages`: npm packages. `node`, `vscode`: those too.

export const rooms = {
  util: {
    folder: "src/util",
    rooms: [],
    packages: [],
    node: false,
    vscode: false,
    advice: "src/util imports nothing: it is loaded by every room, the web page included. What needs more belongs in the room that needs it.",
  },
  protocol: {
    folder: "src/protocol",
    rooms: ["util"],
    packages: [],
    node: false,
    vscode: false,
    advice: "src/protocol only says how files and messages look. What computes with them belongs in src/domain.",
  },
  domain: {
    folder: "src/domain",
    rooms: ["util", "protocol"],
    packages: ["yaml", "ajv", "diff", "simple-statistics"],
    node: false,
    vscode: false,
    advice: "src/domain is pure: no files, processes, editor or clock. Let the caller read and pass data in.",
  },
  storage: {
    folder: "src/storage",
    rooms: ["util", "protocol", "domain"],
    packages: [],
    node: true,
    vscode: false,
    only: {
      "better-sqlite3": ["src/storage/sqliteDriver.ts"],
      "node:sqlite": ["src/storage/sqliteDriver.ts"],
      hyparquet: ["src/storage/datasets/parquetReader.ts"],
      "hyparquet-compressors": ["src/storage/datasets/parquetReader.ts"],
    },
    advice: "src/storage reads and keeps data; it starts nothing and shows nothing. SQLite is reached through sqliteDriver.ts alone.",
  },
  inference: {
    folder: "src/inference",
    rooms: ["util", "protocol", "domain"],
    packages: ["@huggingface/tokenizers", "@huggingface/jinja"],
    node: true,
    vscode: false,
    only: { "onnxruntime-node": ["src/inference/onnxScorer.ts"] },
    advice: "src/inference scores text; it knows no storage, target or editor. services.ts introduces them to each other.",
  },
  targets: {
    folder: "src/targets",
    rooms: ["util", "protocol", "domain"],
    ports: ["src/storage/runs/runStore.ts", "src/storage/runs/processIdentity.ts"],
    packages: [],
    node: true,
    vscode: false,
    only: { "node:child_process": ["src/targets/spawn.ts"], ws: ["src/targets/remote/ray/rayLogs.ts"], fflate: ["src/targets/remote/ray/rayPackage.ts"] },
    advice: "src/targets starts and follows runs through ports. Processes are started in spawn.ts alone, so that none is ever started through a shell.",
  },
  host: {
    folder: "src/host",
    rooms: ["util", "protocol", "domain"],
    ports: [
      "src/ids.ts",
      "src/config.ts",
      "src/storage/runs/runStore.ts",
      "src/storage/traces/traceStore.ts",
      "src/storage/datasets/datasetReader.ts",
      "src/targets/launcher.ts",
      "src/targets/seedRuns.ts",
      "src/targets/targetDesk.ts",
      "src/targets/remote/reachError.ts",
      "src/targets/queueStore.ts",
      "src/targets/followRun.ts",
      "src/targets/python.ts",
      "src/targets/runnerSetup.ts",
      "src/targets/runnerEnv.ts",
      "src/inference/scorer.ts",
    ],
    packages: [],
    node: true,
    vscode: true,
    advice: "src/host touches the editor and reaches runs and traces through ports. An implementation is made in services.ts and handed in.",
  },
  cli: {
    folder: "src/cli",
    rooms: ["util", "protocol", "domain", "storage", "targets", "inference"],
    ports: ["src/services.ts"],
    packages: ["commander"],
    node: true,
    vscode: false,
    advice: "src/cli is the command line: it knows no editor. What both need belongs in src/domain or src/targets.",
  },
  webview: {
    folder: "webview",
    rooms: ["util", "protocol", "domain"],
    packages: ["lit"],
    node: false,
    vscode: false,
    only: { "chart.js": ["webview/chart/plot.ts", "webview/chart/parallelPlot.ts", "webview/chart/arenaPlot.ts"] },
    advice: "webview/ is the page: it has no files, processes or editor, only messages (src/protocol/webview.ts).",
  },
};

/** Node modules that only some files may import, wherever they are. */
export const guarded = Object.assign({}, ...Object.values(rooms).map(({ only }) => only ?? {}));

/** Files of src/ outside every room: the entry points and the composition root. They may import all rooms. */
export const entryFiles = ["src/cli.ts", "src/extension.ts", "src/services.ts", "src/commands.ts", "src/config.ts", "src/ids.ts"];

/** The name of the room a file of the repository is in; null for the entry files and for what is no source. */
export function roomOf(file) {
  return Object.entries(rooms).find(([, { folder }]) => file.startsWith(`${folder}/`))?.[0] ?? null;
}

/**
 * Why `file` may not import `specifier`, as one sentence; null when it may. `target` is the imported file from the root
 * for relative imports.
 */
export function refusal(file, specifier, target) {
  const name = roomOf(file);
  if (specifier.startsWith(".")) {
    if (target.startsWith("test/") && !file.startsWith("test/")) return "Nothing imports test/: move what is shared to where it is used.";
    if (name === null || target.startsWith("media/")) return null;
    const { folder, rooms: allowed, ports = [], advice } = rooms[name];
    if (target.startsWith(`${folder}/`) || ports.includes(target)) return null;
    const other = roomOf(target);
    return other !== null && allowed.includes(other) ? null : advice;
  }
  const packageName = specifier.startsWith("node:") ? specifier : specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
  if (file.startsWith("test/")) return null;
  const files = guarded[packageName];
  if (files !== undefined) return files.includes(file) ? null : `${packageName} is imported by ${files.join(", ")} alone.`;
  if (name === null) return null;
  const { packages, node, vscode, advice } = rooms[name];
  if (specifier.startsWith("node:")) return node ? null : advice;
  if (specifier === "vscode") return vscode ? null : advice;
  return packages.includes(packageName) ? null : advice;
}
