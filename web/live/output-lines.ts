// Joins pieces of output into lines; pieces end anywhere.
import type { OutputEntry } from "./actions.ts";

/** One line of a node's stream. */
export interface OutputLine {
  readonly node: string;
  readonly stream: OutputEntry["stream"];
  readonly text: string;
}

/** Lines that a page keeps; the console's file has the earlier ones. */
export const LINES_KEPT = 50_000;

/** Terminal escape sequences, removed from the output. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** Appends pieces; an unfinished line continues with the next piece of the same node and stream. */
export class OutputLines {
  #lines: OutputLine[] = [];
  /** Lines dropped at the front. */
  #dropped = 0;
  readonly #open = new Map<string, number>();

  /** The lines so far; a new array after each `append`. */
  get lines(): readonly OutputLine[] {
    return this.#lines;
  }

  /** Lines dropped because of the limit. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds pieces in order. */
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

/** A carriage return overwrites the line, as progress bars do; one before a newline is ignored. */
function shown(text: string): string {
  const plain = text.endsWith("\r") ? text.slice(0, -1) : text;
  return plain.slice(plain.lastIndexOf("\r") + 1);
}
