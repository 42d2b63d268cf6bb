import type { Tokenizer } from "@huggingface/tokenizers";
import type { JsonRecord } from "./jsonFile.ts";

const encoder = new TextEncoder();

/**
 * Tokens as raw bytes, as `scoring/tokenbytes.py` spells them: byte-level vocabularies write each byte as one printable
 * letter, sentencepiece ones `▁` for a blank and `<0xE2>` for lone bytes.
 */
export function tokenSpeller(tokenizer: Tokenizer, model: JsonRecord): (id: number) => Uint8Array {
  const byteLevel = JSON.stringify([model["decoder"], model["pre_tokenizer"]]).includes('"ByteLevel"');
  const added = new Map([...tokenizer.get_added_tokens_decoder()].map(([id, token]) => [id, String(token.content)]));
  const letters = byteLetters();
  const cache = new Map<number, Uint8Array>();
  const spell = (id: number): Uint8Array => {
    const whole = added.get(id);
    if (whole !== undefined) return encoder.encode(whole);
    // A padded row of the embedding table has no name.
    const name = tokenizer.id_to_token(id) ?? "";
    const bytes = byteLevel ? Array.from(name, (letter: string) => letters.get(letter)) : [undefined];
    if (bytes.every((byte) => byte !== undefined)) return Uint8Array.from(bytes);
    const lone = /^<0x([0-9A-Fa-f]{2})>$/.exec(name)?.[1];
    return lone === undefined ? encoder.encode(name.replaceAll("▁", " ")) : Uint8Array.of(Number.parseInt(lone, 16));
  };
  return (id) => {
    const found = cache.get(id) ?? spell(id);
    cache.set(id, found);
    return found;
  };
}

/** GPT-2's table from letter to byte. */
function byteLetters(): Map<string, number> {
  const table = new Map<string, number>();
  let extra = 0;
  for (let byte = 0; byte < 256; byte++) {
    const plain = (byte >= 33 && byte < 127) || (byte >= 161 && byte < 173) || byte >= 174;
    table.set(String.fromCharCode(plain ? byte : 256 + extra++), byte);
  }
  return table;
}
