// Lines put together from pieces of output: pieces end where they were read, not where lines end.
import type { OutputEntry } from "./actions.ts";

/** One line of a node's stream. */
export interface OutputLine {
  readonly node: string;
  readonly stream: OutputEntry["stream"];
  readonly text: string;
}

/** As many lines as a page holds; what came before them is in the console's file. */
export const LINES_KEPT = 50_000;

/** What terminals read as colours and movements; here it would be noise. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** Grows by pieces; a line that is not ended yet grows with the next piece of the same node and stream. */
export class OutputLines {
  #lines: OutputLine[] = [];
  /** Lines that were let go at the front. */
  #dropped = 0;
  readonly #open = new Map<string, number>();

  /** The lines so far; a new array after each `append`. */
  get lines(): readonly OutputLine[] {
    return this.#lines;
  }

  /** Lines that are no longer held because there are too many. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds pieces in their order. */
  append(entries: readonly OutputEntry[]): void {
    const lines = [...this.#lines];
    for (const { node_id: node, stream, data } of entries) {
      const key = `${node} ${stream}`;
      const parts = data.replace(ESCAPES, "").split("\n");
      parts.forEach((part, index) => {
        const isLast = index === parts.length - 1;
        const at = index === 0 ? this.#open.get(key) : undefined;
        const before = at === undefined ? undefined : lines[at - this.#dropped];
        if (at !== undefined && before !== undefined) {
          lines[at - this.#dropped] = { ...before, text: shown(before.text + part) };
        } else if (!isLast || part !== "") {
          lines.push({ node, stream, text: shown(part) });
          if (isLast) this.#open.set(key, this.#dropped + lines.length - 1);
        }
        if (!isLast) this.#open.delete(key);
      });
    }
    const tooMany = lines.length - LINES_KEPT;
    this.#lines = tooMany > 0 ? lines.slice(tooMany) : lines;
    this.#dropped += Math.max(0, tooMany);
  }
}

/** A carriage return writes over what stood there, as progress bars do; the one before a line's end stands for nothing. */
function shown(text: string): string {
  const plain = text.endsWith("\r") ? text.slice(0, -1) : text;
  return plain.slice(plain.lastIndexOf("\r") + 1);
}
