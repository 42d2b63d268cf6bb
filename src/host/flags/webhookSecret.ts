/** Under which name the address of a webhook is kept: it is a secret, so the setting only names it. */
export function webhookSecret(name: string): string {
  return ["seesaw", "webhook", name].join(".");
}
