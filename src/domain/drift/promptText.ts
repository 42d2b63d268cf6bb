/** What a person wrote, from a prompt as a chat template rendered it. */

/** Special tokens of the usual templates: `<|user|>`, `<s>`, `[INST]`, `<start_of_turn>` … */
const special = /<\|[^<>|\n]{1,40}\|>|<\/?s>|<\/?(?:bos|eos|pad)>|<(?:start|end)_of_turn>|\[\/?(?:INST|SYS)\]|<<\/?SYS>>/g;
const role = /^\s*(?:user|human|model|assistant|system)\s*\n/i;

/** The last turn with text in a rendered prompt; the prompt itself where it has no special tokens. */
export function promptText(rendered: string): string {
  const turns = rendered.split(special).map((turn) => turn.replace(role, "").trim()).filter((turn) => turn !== "" && !/^(?:user|model|assistant|system)$/i.test(turn));
  return turns.at(-1) ?? rendered.trim();
}
