// One line of the gathered audit log: source and time, then the node's own line unchanged, so that its hash
// stays valid.

/** A gathered line, or the note of a broken chain. */
export interface CopiedLine {
  /** Unix seconds on the console's clock. */
  readonly gatheredAt: number;
  /** Id of the node; "console" for the console's own lines. */
  readonly source: string;
  /** Grows with every break of the source's chain. */
  readonly generation: number;
  /** The line as it was written; undefined for a break. */
  readonly text: string | undefined;
  /** Reason of the break before this line; undefined for a line. */
  readonly broken: string | undefined;
}

/** Prefix of the note of an explained break. */
export const EXPLAINED = "explained: ";

/** Prefix of the note of a break that is not judged yet. */
export const SUSPECTED = "suspected: ";
/** Prefix of the note that a suspected break led to an accusation. */
export const ACCUSED = "accused: ";

/** Source of the console's own lines. */
export const CONSOLE_SOURCE = "console";

const FORM = /^(\d{1,12})\t([A-Za-z0-9._-]{1,128})\t(\d{1,6})\t([!{].*)$/s;

/** The line as it is stored, without its end. */
export function copiedText({ gatheredAt, source, generation, text, broken }: CopiedLine): string {
  return `${gatheredAt}\t${source}\t${generation}\t${text ?? `!${broken}`}`;
}

/** Parses a stored line; undefined for any other text. */
export function readCopied(stored: string): CopiedLine | undefined {
  const [, at, source, generation, rest] = FORM.exec(stored) ?? [];
  if (source === undefined || rest === undefined) return undefined;
  const isBreak = rest.startsWith("!");
  return {
    gatheredAt: Number(at),
    source,
    generation: Number(generation),
    text: isBreak ? undefined : rest,
    broken: isBreak ? rest.slice(1) : undefined,
  };
}
