/** Lengths of a dataset's rows, in tokens, from a sample of it. */
export interface DataFacts {
  rows: number;
  /** Of a whole row as it is trained on, the end token included. */
  mean: number;
  longest: number;
  /** Of the part before the answer, and of the answer; null where the sample has no answers. */
  prompt: number;
  longestPrompt: number;
  answer: number | null;
  /** Rows that were read; `by`: with the model's tokenizer, or by the rule of thumb of 3.6 bytes a token. */
  sampled: number;
  by: "tokenizer" | "bytes";
}

/** One sampled row. */
export interface RowLength {
  tokens: number;
  /** Tokens before the answer. */
  prompt: number;
  hasAnswer: boolean;
}

/** What a whole file's scan says besides the sample. */
export interface FileScan {
  rows: number;
  /** Bytes of the longest row, and of the sampled rows together. */
  longestBytes: number;
  sampledBytes: number;
}

/** English text with a vocabulary of 32k to 150k: bytes a token, JSON around it included. */
export const bytesPerToken = 3.6;

/**
 * Puts a sample and a scan together. The longest row decides the peak of memory and is rarely in a sample: it is estimated
 * from its bytes. null without a single row that can be read.
 */
export function dataFacts(sample: readonly RowLength[], scan: FileScan, by: DataFacts["by"]): DataFacts | null {
  if (sample.length === 0 || scan.rows === 0) return null;
  const sum = (value: (row: RowLength) => number): number => sample.reduce((total, row) => total + value(row), 0);
  const tokens = sum((row) => row.tokens);
  const withAnswer = sample.filter((row) => row.hasAnswer);
  const longestSeen = Math.max(...sample.map((row) => row.tokens));
  const longest = Math.max(longestSeen, Math.round(scan.longestBytes * (tokens / Math.max(1, scan.sampledBytes))));
  const longestPrompt = Math.max(...sample.map((row) => row.prompt));
  return {
    rows: scan.rows,
    mean: tokens / sample.length,
    longest,
    prompt: sum((row) => row.prompt) / sample.length,
    longestPrompt: Math.round(longestPrompt * (longest / longestSeen)),
    answer: withAnswer.length === 0 ? null : withAnswer.reduce((total, row) => total + row.tokens - row.prompt, 0) / withAnswer.length,
    sampled: sample.length,
    by,
  };
}
