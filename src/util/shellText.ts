/** Words of a command as a shell would need them: only for reading, nothing of this is ever run. */
export function shellText(argv: readonly string[]): string {
  return argv.map((word) => (/^[\w./:=@%+<>{}-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}
