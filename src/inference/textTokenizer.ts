import { Tokenizer } from "@huggingface/tokenizers";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../util/errors.ts";
import { ChatTemplate } from "./chatTemplate.ts";
import { readJsonFile, type JsonRecord } from "./jsonFile.ts";
import { tokenSpeller } from "./tokenBytes.ts";

/** A checkpoint's tokenizer and chat template, as far as scoring needs them. */
export interface TextTokenizer {
  ids(text: string, addSpecial: boolean): number[];
  /** As if there were no special tokens: a mark in the text is letters like any others. */
  plainIds(text: string): number[];
  /** Raw bytes of a token; special tokens give their name. */
  bytes(id: number): Uint8Array;
  /** Template marks and ends: they stand for no text of the answer. */
  special: ReadonlySet<number>;
  specialTexts: readonly string[];
  endId: number | null;
  /** null: the checkpoint has none. */
  template: ChatTemplate | null;
}

const specialNames = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/** Reads `tokenizer.json`, its config and the chat template. AppError("bad-input") says what is wrong with them. */
export async function loadTokenizer(folder: string): Promise<TextTokenizer> {
  const [model, config] = await Promise.all([readJsonFile(folder, "tokenizer.json"), readJsonFile(folder, "tokenizer_config.json")]);
  if (model === null) throw new AppError("bad-input", `${folder} has no tokenizer.json. Live scoring reads fast tokenizers only.`);
  const open = (without: (token: JsonRecord) => boolean): Tokenizer => {
    const added = (model["added_tokens"] ?? []) as JsonRecord[];
    try {
      return new Tokenizer({ ...model, added_tokens: added.filter((token) => !without(token)) }, config ?? {});
    } catch (error) {
      throw new AppError("bad-input", `The tokenizer in ${folder} cannot be used: ${messageOf(error)}.`, { cause: error });
    }
  };
  const tokenizer = open(() => false);
  let plain: Tokenizer | undefined;
  const specials = specialTokens(config ?? {});
  const added = [...tokenizer.get_added_tokens_decoder()].filter(([, token]) => token.special);
  const named = Object.values(specials).map((text) => tokenizer.token_to_id(text)).filter((id) => id !== undefined);
  const source = await templateSource(folder, config ?? {});
  return {
    ids: (text, addSpecial) => (text === "" && !addSpecial ? [] : tokenizer.encode(text, { add_special_tokens: addSpecial }).ids),
    plainIds: (text) => (text === "" ? [] : (plain ??= open(({ special }) => special === true)).encode(text, { add_special_tokens: false }).ids),
    bytes: tokenSpeller(tokenizer, model),
    special: new Set([...added.map(([id]) => id), ...named]),
    specialTexts: added.map(([, token]) => token.content).filter((text) => text !== ""),
    endId: specials["eos_token"] === undefined ? null : (tokenizer.token_to_id(specials["eos_token"]) ?? null),
    template: source === null ? null : new ChatTemplate(source, specials),
  };
}

function specialTokens(config: JsonRecord): Record<string, string> {
  const texts = specialNames.map((name): [string, unknown] => {
    const value = config[name];
    return [name, typeof value === "object" && value !== null && "content" in value ? value.content : value];
  });
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

/** `chat_template.jinja`, as transformers writes it today, or the entry of tokenizer_config.json; of several the default. */
async function templateSource(folder: string, config: JsonRecord): Promise<string | null> {
  try {
    return await readFile(join(folder, "chat_template.jinja"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw new AppError("bad-input", `${join(folder, "chat_template.jinja")} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  const entry = config["chat_template"];
  if (typeof entry === "string") return entry;
  const named = Array.isArray(entry) ? (entry as JsonRecord[]).find((one) => one["name"] === "default") : undefined;
  return typeof named?.["template"] === "string" ? named["template"] : null;
}
