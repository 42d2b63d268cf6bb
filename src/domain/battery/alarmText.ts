/** First alarms of a run's skills, one character each: "." for none, else the index of the look in base 36. A bank has some ten thousand of them. */

export function alarmText(looks: readonly (number | null)[]): string {
  return looks.map((look) => (look === null ? "." : look.toString(36))).join("");
}

export function alarmsIn(text: string): (number | null)[] {
  return [...text].map((one) => (one === "." ? null : Number.parseInt(one, 36)));
}

/** More looks than this have no character. */
export const mostLooks = 36;
