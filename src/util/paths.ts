/**
 * Path arithmetic without node:path, so that pure code (and the web page) can use it. Understands POSIX paths, Windows
 * drives (`C:\x`, `C:/x`) and UNC shares (`\\server\share`); the result uses the separator of the base.
 */

const rootPattern = /^(?:[A-Za-z]:[\\/]|\\\\[^\\/]+[\\/]+[^\\/]+[\\/]?|\/)/;

/** True for a path that does not depend on a current folder. */
export function isAbsolutePath(path: string): boolean {
  return rootPattern.test(path);
}

function isWindowsPath(path: string): boolean {
  return /^(?:[A-Za-z]:[\\/]|\\\\)/.test(path);
}

/** `.` and `..` resolved, doubled separators merged, none at the end. `..` above the root stays at the root. */
export function normalizePath(path: string): string {
  const windows = isWindowsPath(path);
  const root = rootPattern.exec(path)?.[0] ?? "";
  const separator = windows ? "\\" : "/";
  const parts: string[] = [];
  for (const part of path.slice(root.length).split(windows ? /[\\/]+/ : /\/+/)) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (part !== ".." || root === "") parts.push(part);
  }
  const head = windows ? root.replaceAll("/", "\\") : root;
  const glue = head !== "" && !head.endsWith(separator) && parts.length > 0 ? separator : "";
  return `${head}${glue}${parts.join(separator)}` || ".";
}

/** `base/path`, normalized; `path` itself when it is absolute. */
export function joinPath(base: string, ...paths: string[]): string {
  let joined = base;
  for (const path of paths) {
    joined = isAbsolutePath(path) ? path : `${joined}${isWindowsPath(joined) ? "\\" : "/"}${path}`;
  }
  return normalizePath(joined);
}

/** The folder a path is in; a root is in itself. */
export function dirName(path: string): string {
  return isAbsolutePath(path) ? joinPath(path, "..") : joinPath(".", path, "..");
}

/** The last part of a path. */
export function baseName(path: string): string {
  return normalizePath(path).split(isWindowsPath(path) ? "\\" : "/").at(-1) ?? path;
}
