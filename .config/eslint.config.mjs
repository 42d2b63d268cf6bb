// Lint rules of the TypeScript: the import fences of .config/rooms.mjs, file size, and what the compiler cannot see.
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import tseslint from "typescript-eslint";
import { refusal } from "./rooms.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Reports every import that the table of rooms does not allow, with its advice. Type-only imports obey it as well. */
const fence = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const file = relative(root, context.filename).replaceAll("\\", "/");
    const check = (source) => {
      if (source?.type !== "Literal" || typeof source.value !== "string") return;
      const target = source.value.startsWith(".") ? posix.join(posix.dirname(file), source.value) : "";
      const why = refusal(file, source.value, target);
      if (why !== null) context.report({ node: source, message: `${file} may not import ${source.value}. ${why}` });
    };
    return {
      ImportDeclaration: (node) => check(node.source),
      ExportNamedDeclaration: (node) => check(node.source),
      ExportAllDeclaration: (node) => check(node.source),
      ImportExpression: (node) => check(node.source),
      CallExpression: (node) => {
        if (node.callee.type === "Identifier" && node.callee.name === "require") check(node.arguments[0]);
      },
    };
  },
};

/** Only one file may make these calls; everything else goes through it. */
const oneCaller = (object, property, where) => ({
  selector: `CallExpression[callee.object.property.name='${object}'][callee.property.name='${property}']`,
  message: `${property} is called in ${where} alone.`,
});

const restricted = {
  defaultExport: { selector: "ExportDefaultDeclaration", message: "No default exports: a name is the same everywhere it is used." },
  barrel: { selector: "ExportAllDeclaration", message: "No barrels: import from the file that defines it." },
  prefix: { selector: "TSInterfaceDeclaration[id.name=/^I[A-Z][a-z]/]", message: "No I prefix: name the thing." },
  html: { selector: "AssignmentExpression[left.property.name=/^(innerHTML|outerHTML)$/]", message: "Text never becomes HTML: let Lit render it." },
};
const command = oneCaller("commands", "registerCommand", "src/commands.ts");
const setting = oneCaller("workspace", "getConfiguration", "src/config.ts");
const vscodeApi = { selector: "CallExpression[callee.name='acquireVsCodeApi']", message: "acquireVsCodeApi is called in webview/vscodeEndpoint.ts alone." };

export default tseslint.config(
  { ignores: ["dist/", "coverage/", ".cache/", ".venv/", "**/node_modules/", "runner/", "media/", "**/*.mjs", "**/*.cjs", "**/*.js"] },
  {
    files: ["src/**/*.ts", "webview/**/*.ts", "test/**/*.ts"],
    plugins: { "@typescript-eslint": tseslint.plugin, seesaw: { rules: { fence } } },
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { project: [join(root, "tsconfig.json"), join(root, "webview", "tsconfig.json")], tsconfigRootDir: root },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "seesaw/fence": "error",
      "max-lines": ["error", { max: 400 }],
      "no-console": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-eval": "error",
      "no-new-func": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: false }],
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/only-throw-error": "error",
      "no-restricted-syntax": ["error", ...Object.values(restricted), command, setting, vscodeApi],
    },
  },
  { files: ["src/cli.ts", "src/cli/**/*.ts"], rules: { "no-console": "off" } },
  { files: ["src/commands.ts"], rules: { "no-restricted-syntax": ["error", ...Object.values(restricted), setting, vscodeApi] } },
  { files: ["src/config.ts"], rules: { "no-restricted-syntax": ["error", ...Object.values(restricted), command, vscodeApi] } },
  { files: ["webview/vscodeEndpoint.ts"], rules: { "no-restricted-syntax": ["error", ...Object.values(restricted), command, setting] } },
  {
    // node:test's `test` and mocha's `it` give promises that their runner awaits; assertions on fixtures use `!`.
    files: ["test/**/*.ts"],
    rules: {
      "max-lines": ["error", { max: 600 }],
      "no-console": "off",
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", name: ["test", "it", "describe", "suite", "before", "after", "beforeEach", "afterEach"], package: "node:test" }] }],
      "no-restricted-syntax": ["error", restricted.defaultExport, restricted.barrel],
    },
  },
);
