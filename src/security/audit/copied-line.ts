// One line of the gathered audit log: where it came from and when, then the line itself as its node wrote it, so that its hash still holds.

/** A line that was gathered, or the note that a chain broke. */
export interface CopiedLine {
  /** Unix seconds on the console's clock. */
  readonly gatheredAt: number;
  /** Id of the node; "console" for the console's own lines. */
  readonly source: string;
  /** Goes up with every break of the source's chain. */
  readonly generation: number;
  /** The line as it was written; undefined for a break. */
  readonly text: string | undefined;
  /** Why the chain before this one has ended; undefined for a line. */
  readonly broken: string | undefined;
}

/** How the note begins that a break had a reason. */
export const EXPLAINED = "explained: ";

/** How the note of a break begins while nobody has judged it, and how one that was accused is noted then. */
export const SUSPECTED = "suspected: ";
/** The same of the end of that. */
export const ACCUSED = "accused: ";

/** Source of the console's own lines. */
export const CONSOLE_SOURCE = "console";

const FORM = /^(\d{1,12})\t([A-Za-z0-9._-]{1,128})\t(\d{1,6})\t([!{].*)$/s;

/** The line as it is stored, without its end. */
export function copiedText({ gatheredAt, source, generation, text, broken }: CopiedLine): string {
  return `${gatheredAt}\t${source}\t${generation}\t${text ?? `!${broken}`}`;
}

/** Reads a stored line; undefined for what is none. */
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
