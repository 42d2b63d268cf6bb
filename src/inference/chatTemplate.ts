import { parse, Template, tokenize } from "@huggingface/jinja";
import { AppError, messageOf } from "../util/errors.ts";

/** A chat message as a template sees it: content is always text. */
export interface ChatMessage {
  role: string;
  content: string;
  [key: string]: unknown;
}

/** A rendered chat; `spans` are the UTF-16 ranges of the template's `{% generation %}` blocks, empty where it has none. */
export interface Rendered {
  text: string;
  spans: { start: number; end: number }[];
}

const generation = /\{%[-+]?\s*generation\s*[-+]?%\}/;
/** Private-use characters that mark where a generation block begins and ends; the first pair that no text has is used. */
const marks = [["\ue0f0", "\ue0f1"], ["\uf5a0", "\uf5a1"], ["\ue7c4", "\ue7c5"]] as const;

/** A model's chat template, with transformers' `generation` blocks, which the Jinja library only drops. */
export class ChatTemplate {
  /** True when the template itself says what the model writes. */
  readonly marksAnswers: boolean;
  private readonly source: string;
  private readonly specials: Record<string, string>;
  private readonly compiled = new Map<number, Template>();

  /** `specials`: bos_token, eos_token … as templates name them. */
  constructor(source: string, specials: Record<string, string>) {
    this.source = source;
    this.specials = specials;
    this.marksAnswers = generation.test(source);
  }

  /** AppError("bad-input") when the template refuses these messages. */
  render(messages: readonly ChatMessage[], tools: unknown, generationPrompt: boolean): Rendered {
    const given = JSON.stringify([messages, tools ?? null]);
    const pair = marks.findIndex(([open, close]) => [this.source, given].every((text) => !text.includes(open) && !text.includes(close)));
    const [open, close] = marks[pair] ?? [];
    if (open === undefined || close === undefined) throw new AppError("bad-input", "The row holds every private-use character that live scoring could mark the answer with.");
    let text: string;
    try {
      const template = this.compiled.get(pair) ?? compile(this.source, open, close);
      this.compiled.set(pair, template);
      text = template.render({ ...this.specials, messages, tools: tools ?? null, documents: null, add_generation_prompt: generationPrompt });
    } catch (error) {
      throw new AppError("bad-input", `The chat template rejects this row: ${messageOf(error).split("\n")[0]}`, { cause: error });
    }
    return takeMarks(text, open, close);
  }
}

/**
 * White space is handled here and not by the library: transformers renders with trim_blocks and lstrip_blocks, and the
 * library would count our marks as text around which nothing is trimmed.
 */
function compile(source: string, open: string, close: string): Template {
  const trimmed = source.replace(/^[ \t]*(\{[#%](?!\+))/gm, "$1").replace(/((?<!\+)[#%]\})\n/g, "$1");
  const marked = trimmed.replace(/(\s*)\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}(\s*)/g, (_, before: string, left: string, end: string | undefined, right: string, after: string) => {
    return `${left === "-" ? "" : before}{{ "${end === undefined ? open : close}" }}${right === "-" ? "" : after}`;
  });
  const template = new Template("");
  // The library does not know the sign that switches trimming off.
  template.parsed = parse(tokenize(marked.replace(/(\{[%#])\+/g, "$1").replace(/\+([%#]\})/g, "$1")));
  return template;
}

function takeMarks(marked: string, open: string, close: string): Rendered {
  const spans: Rendered["spans"] = [];
  let text = "";
  let start: number | null = null;
  for (const part of marked.split(new RegExp(`([${open}${close}])`))) {
    if (part === open) start = text.length;
    else if (part === close) {
      if (start !== null && text.length > start) spans.push({ start, end: text.length });
      start = null;
    } else text += part;
  }
  return { text, spans };
}
