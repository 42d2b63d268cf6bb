/** UTF-16 offset at which two texts part, never inside a character; null when they are equal. */
export function firstDivergence(before: string, after: string): number | null {
  if (before === after) return null;
  let at = 0;
  while (at < before.length && at < after.length && before[at] === after[at]) at += 1;
  const unit = at > 0 ? before.charCodeAt(at - 1) : 0;
  return unit >= 0xd800 && unit <= 0xdbff ? at - 1 : at;
}
