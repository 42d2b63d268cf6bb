/** Under which name the token of a Ray cluster is kept. By address: a file that names another one does not get it. */
export function raySecret(address: string): string {
  return ["seesaw", "ray", address.replace(/\/+$/, "").toLowerCase()].join(" ");
}
