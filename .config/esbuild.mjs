// Every bundle in one list. `--watch` rebuilds on change, `--production` minifies and leaves source maps out,
// `--only NAME --outdir DIR` builds one bundle elsewhere (tests do).
import { existsSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const common = (production) => ({
  absWorkingDir: root,
  bundle: true,
  sourcemap: production ? false : "linked",
  minify: production,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});

/** Node's side. The native modules stay outside: each is found in node_modules, by the file that imports it. */
const forNode = { platform: "node", target: "node22", external: ["vscode", "better-sqlite3", "onnxruntime-node"] };

/** Modules that the extension imports only when a pipeline or a dataset is there, with the bundle beside it that holds them. */
const later = {
  name: "later",
  setup(build) {
    build.onResolve({ filter: /\/pipeline\/pipeline\.ts$/ }, ({ kind }) => (kind === "dynamic-import" ? { path: "./pipeline.cjs", external: true } : undefined));
  },
};

/** The readers of dataset files: a bundle of their own, for both entry points. */
const datasetsLater = {
  name: "datasets-later",
  setup(build) {
    build.onResolve({ filter: /\/openDataset\.ts$/ }, ({ kind }) => (kind === "dynamic-import" ? { path: "./datasets.cjs", external: true } : undefined));
  },
};

/** What a window shows of an arena: a bundle of its own for the extension. It finds the parser beside it. */
const arenaLater = {
  name: "arena-later",
  setup(build) {
    build.onResolve({ filter: /\/arenaDesk\.ts$/ }, ({ kind }) => (kind === "dynamic-import" ? { path: "./arena.cjs", external: true } : undefined));
  },
};
/** What a stage will cost, and the tokenizer that counts its rows: wanted when one is about to start. */
const costsLater = {
  name: "costs-later",
  setup(build) {
    build.onResolve({ filter: /\/costPlanner\.ts$/ }, ({ kind }) => (kind === "dynamic-import" ? { path: "./costs.cjs", external: true } : undefined));
    build.onResolve({ filter: /\/rowLengths\.ts$/ }, ({ kind }) => (kind === "dynamic-import" ? { path: "./rowLengths.cjs", external: true } : undefined));
  },
};
const parserBeside = {
  name: "parser-beside",
  setup(build) {
    build.onResolve({ filter: /\/pipeline\/pipeline\.ts$/ }, () => ({ path: "./pipeline.cjs", external: true }));
  },
};

const bundles = [
  {
    name: "cli",
    entryPoints: ["src/cli.ts"],
    outfile: "dist/cli.js",
    ...forNode,
    format: "esm",
    plugins: [datasetsLater],
    // Libraries written as CommonJS call require(), which an ES module does not have.
    banner: { js: '#!/usr/bin/env node\nimport { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);' },
  },
  {
    name: "extension",
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.cjs",
    ...forNode,
    format: "cjs",
    plugins: [later, datasetsLater, arenaLater, costsLater],
    supported: { "dynamic-import": false },
    // In a CommonJS file import.meta.url is empty; the bundle's own address stands in for it.
    define: { "import.meta.url": "__importMetaUrl" },
    banner: { js: 'const __importMetaUrl = require("node:url").pathToFileURL(__filename).href;' },
  },
  // The YAML parser, the schema and its validator: more than half of the code, and not needed to be ready.
  { name: "pipeline", entryPoints: ["src/domain/pipeline/pipeline.ts"], outfile: "dist/pipeline.cjs", ...forNode, format: "cjs" },
  { name: "datasets", entryPoints: ["src/storage/datasets/openDataset.ts"], outfile: "dist/datasets.cjs", ...forNode, format: "cjs" },
  { name: "arena", entryPoints: ["src/targets/arena/arenaDesk.ts"], outfile: "dist/arena.cjs", ...forNode, format: "cjs", plugins: [parserBeside] },
  { name: "costs", entryPoints: ["src/targets/costPlanner.ts"], outfile: "dist/costs.cjs", ...forNode, format: "cjs" },
  { name: "rowLengths", entryPoints: ["src/inference/rowLengths.ts"], outfile: "dist/rowLengths.cjs", ...forNode, format: "cjs" },
  { name: "arenaPage", entryPoints: ["webview/arena/main.ts"], outfile: "dist/arena.js", platform: "browser", target: "es2022", format: "esm", tsconfig: "webview/tsconfig.json" },
  { name: "datasetsPage", entryPoints: ["webview/datasets/main.ts"], outfile: "dist/datasets.js", platform: "browser", target: "es2022", format: "esm", tsconfig: "webview/tsconfig.json" },
  { name: "weightsPage", entryPoints: ["webview/weights/main.ts"], outfile: "dist/weights.js", platform: "browser", target: "es2022", format: "esm", tsconfig: "webview/tsconfig.json" },
  // Large files are hashed in worker threads; services.ts finds this file beside its own bundle.
  { name: "rowIndexWorker", entryPoints: ["src/storage/rows/rowIndexWorker.ts"], outfile: "dist/rowIndexWorker.js", ...forNode, format: "esm" },
  // Live scoring runs in a thread of its own, too.
  { name: "scorerWorker", entryPoints: ["src/inference/scorerWorker.ts"], outfile: "dist/scorerWorker.js", ...forNode, format: "esm" },
  { name: "webview", entryPoints: ["webview/main.ts"], outfile: "dist/webview.js", platform: "browser", target: "es2022", format: "esm", tsconfig: "webview/tsconfig.json" },
];

/** Builds what has a source. Returns one line per bundle for the person. */
export async function build({ production = false, watch = false, only, outdir } = {}) {
  // Not imported above: set-up runs before esbuild is installed.
  const esbuild = await import("esbuild");
  const lines = [];
  const packages = new Set();
  for (const { name, ...bundle } of bundles) {
    if (!existsSync(join(root, bundle.entryPoints[0])) || (only !== undefined && only !== name)) continue;
    if (outdir !== undefined) bundle.outfile = join(outdir, basename(bundle.outfile));
    const options = { ...common(production), ...bundle };
    if (options.tsconfig && !existsSync(join(root, options.tsconfig))) delete options.tsconfig;
    if (watch) {
      await (await esbuild.context(options)).watch();
      lines.push(`watching ${bundle.entryPoints[0]}`);
      continue;
    }
    const { metafile } = await esbuild.build(options);
    for (const path of Object.keys(metafile.inputs)) packages.add(/.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
    const bytes = Object.entries(metafile.outputs).find(([path]) => !path.endsWith(".map"))?.[1].bytes ?? 0;
    lines.push(`${bundle.outfile} ${Math.round(bytes / 1024)} kB`);
  }
  // Whose code is in the bundles: its licences ship with it.
  packages.delete(undefined);
  if (only === undefined && outdir === undefined && !watch) writeFileSync(join(root, "dist", "packages.json"), JSON.stringify([...packages].sort()));
  return lines;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const after = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
  const flags = { production: process.argv.includes("--production"), watch: process.argv.includes("--watch") };
  const lines = await build({ ...flags, only: after("--only"), outdir: after("--outdir") });
  for (const line of lines) console.log(line);
}
