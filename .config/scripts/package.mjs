// `npm run package`: a production build, then one VSIX per platform with only that platform's native module inside.
// `npm run package linux-x64` packs one. Files are copied to a staging folder by an explicit list, and every finished
// VSIX is opened again and compared with it.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { thirdPartyLicences } from "./licences.mjs";
import { SetupError, done, failWith, runStep, say } from "./progress.mjs";
import { node24, root, setup } from "./setup.mjs";

/** VS Code's name of a platform → the prebuilt file of better-sqlite3 for it. */
const natives = {
  "linux-x64": "linux-x64",
  "linux-arm64": "linux-arm64",
  "alpine-x64": "linuxmusl-x64",
  "alpine-arm64": "linuxmusl-arm64",
  "darwin-x64": "darwin-x64",
  "darwin-arm64": "darwin-arm64",
  "win32-x64": "win32-x64",
  "win32-arm64": "win32-arm64",
};

/**
 * VS Code's name of a platform → the files of ONNX Runtime for it. Elsewhere there is none, and live scoring says so. What
 * only a GPU needs (DirectML and its compiler, loaded on demand) stays out, and so does macOS's second copy of the library.
 */
const runtimes = {
  "linux-x64": ["linux/x64/onnxruntime_binding.node", "linux/x64/libonnxruntime.so.1"],
  "linux-arm64": ["linux/arm64/onnxruntime_binding.node", "linux/arm64/libonnxruntime.so.1"],
  "darwin-arm64": ["darwin/arm64/onnxruntime_binding.node", "darwin/arm64/libonnxruntime.1.dylib"],
  "win32-x64": ["win32/x64/onnxruntime_binding.node", "win32/x64/onnxruntime.dll"],
  "win32-arm64": ["win32/arm64/onnxruntime_binding.node", "win32/arm64/onnxruntime.dll"],
};

/** What ships: files, and folders (with a slash) of which everything ships that is not forbidden. */
const shipped = [
  "package.nls.json",
  "package.nls.zh-cn.json",
  "README.md",
  "CHANGELOG.md",
  "LICENSE",
  "dist/extension.cjs",
  "dist/pipeline.cjs",
  "dist/costs.cjs",
  "dist/rowLengths.cjs",
  "dist/rowIndexWorker.js",
  "dist/scorerWorker.js",
  "dist/webview.js",
  "dist/datasets.cjs",
  "dist/datasets.js",
  "dist/weights.js",
  "dist/arena.cjs",
  "dist/arena.js",
  "dist/cli.js",
  "media/icon.png",
  "media/activity.svg",
  "media/seesaw.schema.json",
  "media/walkthrough/",
  "media/sample/",
  "media/battery/card.json",
  "media/battery/curves.svg",
  "REPORT_CARD.md",
  "l10n/",
  "runner/probe.py",
  "runner/requirements.txt",
  "runner/seesaw_runner/",
  "node_modules/better-sqlite3/LICENSE",
  "node_modules/better-sqlite3/lib/",
];
/** What must be there: a list that finds nothing must not pass. */
const required = ["package.json", "LICENSE", "dist/extension.cjs", "dist/pipeline.cjs", "dist/costs.cjs", "dist/rowLengths.cjs", "dist/rowIndexWorker.js", "dist/scorerWorker.js", "dist/webview.js", "dist/datasets.cjs", "dist/datasets.js", "dist/weights.js", "dist/arena.cjs", "dist/arena.js", "dist/cli.js", "media/icon.png", "media/activity.svg", "media/walkthrough/sample.svg", "media/sample/seesaw.yaml", "REPORT_CARD.md", "media/battery/card.json", "l10n/bundle.l10n.zh-cn.json", "runner/probe.py", "node_modules/better-sqlite3/lib/index.js"];
const forbidden = /(^|\/)(\.seesaw|__pycache__|test|tests|src|webview|\.venv|\.cache)\/|\.map$|\.ts$|\.pyc$|\.vsix$/;

/** Builds and packs; returns the files made. Default: all platforms, into the root. */
export async function packageExtension({ platforms = Object.keys(natives), out = root, build = true } = {}) {
  for (const platform of platforms) {
    if (!(platform in natives)) throw new SetupError(`${platform} is no platform of ours: choose from ${Object.keys(natives).join(", ")}.`);
  }
  if (build) await runStep("Building for production", [node24, join(root, ".config", "esbuild.mjs"), "--production"], { cwd: root });
  mkdirSync(out, { recursive: true });
  const packed = [];
  for (const platform of platforms) packed.push(await packOne(platform, out));
  return packed;
}

async function packOne(platform, out) {
  // One's own folder: two windows may pack at the same time.
  const stage = join(root, ".cache", "package", `${platform}-${process.pid}`);
  const files = stageFiles(stage, platform);
  const manifest = JSON.parse(readFileSync(join(stage, "package.json"), "utf8"));
  const vsix = join(out, `${manifest.name}-${platform}-${manifest.version}.vsix`);
  rmSync(vsix, { force: true });
  const vsce = join(root, "node_modules", "@vscode", "vsce", "vsce");
  await runStep(`Packing ${platform}`, [node24, vsce, "package", "--target", platform, "--out", vsix, "--allow-missing-repository", "--no-rewrite-relative-links"], {
    cwd: stage,
    env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH ?? ""}` },
  });
  await verify(vsix, files, platform);
  rmSync(stage, { recursive: true, force: true });
  const { size } = statSync(vsix);
  return { platform, vsix, size, files: files.length };
}

/** Copies what ships into an empty folder; returns the paths, sorted. */
function stageFiles(stage, platform) {
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  const files = shipped.flatMap((name) => (name.endsWith("/") ? filesIn(name.slice(0, -1)) : existsSync(join(root, name)) ? [name] : []));
  files.push(`node_modules/better-sqlite3/prebuilds/${natives[platform]}.node`);
  const live = (runtimes[platform] ?? []).map((name) => `node_modules/onnxruntime-node/bin/napi-v6/${name}`);
  if (live.length > 0) files.push(...live, ...filesIn("node_modules/onnxruntime-node/dist"), ...filesIn("node_modules/onnxruntime-common/dist/cjs").filter((name) => !name.endsWith("/package.json")));
  for (const file of files) {
    mkdirSync(dirname(join(stage, file)), { recursive: true });
    cpSync(join(root, file), join(stage, file));
  }
  writeJson(join(stage, "package.json"), extensionManifest(platform));
  for (const name of ["README.md", "CHANGELOG.md"]) writeFileSync(join(stage, name), standalone(readFileSync(join(root, name), "utf8")));
  // Its build-time dependency is not needed beside a prebuilt file.
  const { dependencies: _, scripts: _scripts, ...native } = readJson(join(root, "node_modules/better-sqlite3/package.json"));
  writeJson(join(stage, "node_modules/better-sqlite3/package.json"), native);
  writeFileSync(join(stage, "THIRD_PARTY_LICENCES.txt"), thirdPartyLicences(["better-sqlite3", ...(live.length > 0 ? ["onnxruntime-node", "onnxruntime-common"] : [])]));
  files.push("package.json", "THIRD_PARTY_LICENCES.txt", "node_modules/better-sqlite3/package.json");
  for (const name of live.length > 0 ? ["onnxruntime-node", "onnxruntime-common"] : []) {
    // Its dependencies are those of its install script; the two are CommonJS here.
    const { dependencies: _, devDependencies: _dev, scripts: _scripts, type: _type, exports: _exports, ...runtime } = readJson(join(root, `node_modules/${name}/package.json`));
    writeJson(join(stage, `node_modules/${name}/package.json`), runtime);
    files.push(`node_modules/${name}/package.json`);
  }
  const missing = required.filter((file) => !files.includes(file));
  if (missing.length > 0) throw new SetupError(`Nothing was packed: ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing. Build first, and see \`shipped\` in .config/scripts/package.mjs.`);
  return files.sort();
}

/**
 * A page without what only the repository has: an editor shows no picture of a relative address, and a link to a file
 * that is not packed leads nowhere. Pictures go, so do lines of nothing but such links and the headings above them;
 * other links become their text.
 */
export function standalone(markdown) {
  const link = /!?\[[^\]]*\]\((?!https:|#)[^)]*\)/g;
  const lines = markdown.split("\n").filter((line) => line.search(link) < 0 || /\w{4,}/.test(line.replace(link, "")));
  const without = lines.join("\n").replace(/^#+ [^\n]*\n+(?=#|$(?![\s\S]))/gm, "").replace(/\n{3,}/g, "\n\n").replace(/(?<!!)\[([^\]]+)\]\((?!https:|#)[^)]*\)/g, "$1");
  if (/\]\((?!https:|#)/.test(without)) throw new SetupError(`A link of the packed page leads nowhere: ${/.*\]\((?!https:|#).*/.exec(without)[0]}`);
  return without;
}

/** All files under a folder of the root that may ship, with forward slashes. */
function filesIn(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (isForbidden(entry.isDirectory() ? `${path}/` : path)) return [];
    return entry.isDirectory() ? filesIn(path) : [path];
  });
}

function isForbidden(path) {
  return forbidden.test(path.replace(/^node_modules\/[^/]+\//, ""));
}

/** The manifest without what only the repository needs. */
function extensionManifest(platform) {
  const { scripts: _scripts, devDependencies: _dev, bin: _bin, allowScripts: _allow, private: _private, ...manifest } = readJson(join(root, "package.json"));
  // vsce refuses to pack a dependency that is named and not there.
  if (!(platform in runtimes)) delete manifest.dependencies["onnxruntime-node"];
  // A schema that is not there (yet) must not be named.
  if (!existsSync(join(root, "media/seesaw.schema.json"))) delete manifest.contributes.yamlValidation;
  return manifest;
}

/** Opens the VSIX and compares: exactly the staged files, this platform's native modules, nothing forbidden. */
async function verify(vsix, files, platform) {
  const { unzipSync } = await import("fflate");
  const names = [];
  unzipSync(readFileSync(vsix), { filter: ({ name }) => void names.push(name) });
  const inside = names.filter((name) => name.startsWith("extension/")).map((name) => name.slice("extension/".length)).sort();
  // vsce lower-cases these three.
  const expected = files.map((file) => ({ "README.md": "readme.md", "CHANGELOG.md": "changelog.md", LICENSE: "LICENSE.txt" })[file] ?? file).sort();
  const surplus = inside.filter((file) => !expected.includes(file));
  const missing = expected.filter((file) => !inside.includes(file));
  const nativeFiles = inside.filter((file) => file.endsWith(".node"));
  const bad = inside.filter(isForbidden);
  if (surplus.length + missing.length + bad.length > 0) throw new SetupError(`${vsix} is wrong: surplus ${surplus.join(", ") || "none"}; missing ${missing.join(", ") || "none"}; forbidden ${bad.join(", ") || "none"}.`);
  const wanted = [`better-sqlite3/prebuilds/${natives[platform]}.node`, ...(runtimes[platform] ?? []).filter((name) => name.endsWith(".node")).map((name) => `onnxruntime-node/bin/napi-v6/${name}`)].map((name) => `node_modules/${name}`);
  if (nativeFiles.join() !== wanted.sort().join()) throw new SetupError(`${vsix} holds ${nativeFiles.join(", ") || "no native module"}, wanted ${wanted.join(", ")}.`);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const platforms = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
  try {
    await setup({ python: false });
    const packed = await packageExtension(platforms.length === 0 ? {} : { platforms });
    for (const { platform, vsix, size, files } of packed) say(`${platform.padEnd(13)} ${(size / 1e6).toFixed(2).padStart(6)} MB  ${files} files  ${vsix}`);
    done(`${packed.length} VSIX, contents verified`);
  } catch (error) {
    failWith(error);
  }
}
