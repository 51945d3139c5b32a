// Verifies every chain among the gathered audit lines, and compares one with the log of its node (D24).
import { existsSync } from "node:fs";
import { join } from "node:path";
import { COPIES_FOLDER } from "./audit-copies.ts";
import { AUDIT_FOLDER, auditFiles, linesOf } from "./audit-files.ts";
import { type ChainHead, hashOf, readLine } from "./audit-line.ts";
import { ACCUSED, EXPLAINED, readCopied, SUSPECTED } from "./copied-line.ts";

/** Result for one source. */
export interface CopyVerdict {
  readonly source: string;
  readonly lines: number;
  /** Number and time of the first and last line of the newest chain; undefined when there is none. */
  readonly first: { readonly seq: number; readonly time: string } | undefined;
  readonly last: { readonly seq: number; readonly time: string } | undefined;
  /** Places and reasons of breaks; empty when all chains hold. */
  readonly broken: readonly string[];
  /** Breaks that were explained, such as by a restore. */
  readonly notes: readonly string[];
}

/** Differences that are listed one by one. */
const DIFFERENCES_LISTED = 10;

/** True for a data folder that holds gathered lines. */
export function hasCopies(dataFolder: string): boolean {
  return existsSync(join(dataFolder, COPIES_FOLDER));
}

/** Verifies the gathered lines of a console's data folder, also of a running one. It reads only. */
export async function verifyCopies(dataFolder: string): Promise<readonly CopyVerdict[]> {
  const chains = new Map<string, CopyChain>();
  const unreadable = await readCopies(dataFolder, (source, generation, text, broken) => {
    let chain = chains.get(source);
    if (chain === undefined) {
      chain = new CopyChain(source);
      chains.set(source, chain);
    }
    chain.take(generation, text, broken);
  });
  const verdicts = [...chains.values()]
    .map((chain) => chain.verdict)
    .sort((a, b) => (a.source < b.source ? -1 : 1));
  if (unreadable.length === 0) return verdicts;
  return [
    { source: COPIES_FOLDER, lines: 0, first: undefined, last: undefined, broken: unreadable, notes: [] },
    ...verdicts,
  ];
}

/**
 * Compares the lines gathered from a source with the log in its process's data folder. Every line that both
 * have must be the same, and the log must not end before the copy does. Returns the differences.
 */
export async function compareCopies(
  dataFolder: string,
  source: string,
  nodeFolder: string,
): Promise<{ readonly compared: number; readonly differences: readonly string[] }> {
  const copied = new Map<number, string>();
  let current = 0;
  await readCopies(dataFolder, (from, generation, text) => {
    if (from !== source) return;
    // Lines gathered before a break belong to another chain.
    if (generation !== current) copied.clear();
    current = generation;
    const seq = text === undefined ? undefined : readLine(text)?.seq;
    if (seq !== undefined && text !== undefined) copied.set(seq, hashOf(text));
  });
  const differences: string[] = [];
  let [compared, lastSeq] = [0, 0];
  for (const file of await auditFiles(join(nodeFolder, AUDIT_FOLDER))) {
    for await (const { text, isWhole } of linesOf(file.path)) {
      const seq = isWhole ? readLine(text)?.seq : undefined;
      if (seq === undefined) continue;
      lastSeq = Math.max(lastSeq, seq);
      const hash = copied.get(seq);
      if (hash === undefined) continue;
      compared++;
      if (hash !== hashOf(text)) differences.push(`line ${seq} is not the one that was gathered`);
    }
  }
  const lastCopied = copied.keys().reduce((last, seq) => Math.max(last, seq), 0);
  if (lastCopied > lastSeq) {
    differences.push(`the log ends with line ${lastSeq}; lines up to ${lastCopied} were gathered from it`);
  }
  if (copied.size === 0) differences.push(`nothing was gathered from ${source}`);
  return { compared, differences: cut(differences) };
}

function cut(differences: readonly string[]): readonly string[] {
  const more = differences.length - DIFFERENCES_LISTED;
  return more <= 0 ? differences : [...differences.slice(0, DIFFERENCES_LISTED), `and ${more} more`];
}

type Take = (
  source: string,
  generation: number,
  text: string | undefined,
  broken: string | undefined,
) => void;

/** Passes on all gathered lines in order; returns what is unreadable. */
async function readCopies(dataFolder: string, take: Take): Promise<string[]> {
  const files = await auditFiles(join(dataFolder, COPIES_FOLDER));
  const unreadable: string[] = [];
  for (const [at, file] of files.entries()) {
    for await (const { text, offset, isWhole } of linesOf(file.path)) {
      const line = isWhole ? readCopied(text) : undefined;
      if (line !== undefined) take(line.source, line.generation, line.text, line.broken);
      else if (at !== files.length - 1 || isWhole) {
        unreadable.push(`${file.path} at byte ${offset}: is no gathered line`);
      }
    }
  }
  return unreadable;
}

/** The chain of one source, generation after generation. */
class CopyChain {
  readonly #source: string;
  readonly #broken: string[] = [];
  readonly #notes: string[] = [];
  #generation = 0;
  #head: ChainHead | undefined;
  #lines = 0;
  #first: CopyVerdict["first"];
  #last: CopyVerdict["last"];

  constructor(source: string) {
    this.#source = source;
  }

  get verdict(): CopyVerdict {
    const [source, lines, first, last] = [this.#source, this.#lines, this.#first, this.#last];
    return { source, lines, first, last, broken: cut(this.#broken), notes: cut(this.#notes) };
  }

  take(generation: number, text: string | undefined, broken: string | undefined): void {
    if (generation !== this.#generation) {
      // The note may have been rotated away with the lines before it.
      if (this.#generation !== 0 && broken === undefined)
        this.#broken.push(`chain ${generation} begins without a reason`);
      this.#generation = generation;
      this.#head = undefined;
      this.#first = undefined;
    }
    if (broken?.startsWith(EXPLAINED) === true) {
      const [why] = this.#broken.splice(-1);
      this.#notes.push(`${broken.slice(EXPLAINED.length)}${why === undefined ? "" : ` (${why})`}`);
      return;
    }
    if (broken !== undefined) {
      // The accusation is already recorded.
      if (broken.startsWith(ACCUSED)) return;
      this.#broken.push(broken.startsWith(SUSPECTED) ? broken.slice(SUSPECTED.length) : broken);
      return;
    }
    const line = text === undefined ? undefined : readLine(text);
    if (line === undefined || text === undefined) {
      this.#broken.push(`what follows line ${this.#head?.seq ?? 0} is no line of an audit log`);
      return;
    }
    if (this.#head !== undefined && (line.seq !== this.#head.seq + 1 || line.prev !== this.#head.hash)) {
      this.#broken.push(
        `the copy of line ${line.seq} does not follow from that of line ${this.#head.seq}: the copies were changed`,
      );
    }
    this.#head = { seq: line.seq, hash: hashOf(text) };
    this.#first ??= { seq: line.seq, time: line.time };
    this.#last = { seq: line.seq, time: line.time };
    this.#lines++;
  }
}
