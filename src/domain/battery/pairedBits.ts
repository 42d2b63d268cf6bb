/** Right answers before and now of the same rows, each row one character "0" or "1". */
export interface BitChange {
  lost: number;
  gained: number;
  n: number;
}

/** Rows lost and gained; only the first `rows` where that is given. */
export function changeOfBits(before: string, now: string, rows = before.length): BitChange {
  let [lost, gained] = [0, 0];
  for (let row = 0; row < rows; row += 1) {
    if (before[row] === now[row]) continue;
    if (before[row] === "1") lost += 1;
    else gained += 1;
  }
  return { lost, gained, n: rows };
}
