// Gathers the audit lines of all nodes in the console's folder: appended on arrival, each chain verified line
// by line (D24).
import { mkdir, open, readFile, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { removeLeftovers, syncDirectory, writeFileAtomic } from "#os/atomic-file.ts";
import { type AuditFile, auditFile, auditFiles, linesOf } from "./audit-files.ts";
import { type ChainHead, hashOf, readLine } from "./audit-line.ts";
import { ACCUSED, type CopiedLine, copiedText, EXPLAINED, readCopied, SUSPECTED } from "./copied-line.ts";

/** Size of one file of gathered audit lines; the next line begins another. */
const AUDIT_COPY_FILE_BYTES = 16_777_216;
/** Files of gathered audit lines that are kept, 2 GiB in all; the oldest goes first. */
const AUDIT_COPY_FILES_KEPT = 128;
/** Longest audit line that is accepted from a node. */
const AUDIT_GATHERED_LINE_MAX_BYTES = 65_536;
/** Shortest interval between flushes of gathered lines. */
const AUDIT_COPY_FLUSH_INTERVAL_MS = 1_000;
/** How often the head of each chain is saved; a start reads later lines again. */
const AUDIT_HEADS_INTERVAL_MS = 60_000;

/** Folder of the gathered lines inside the console's data folder. */
export const COPIES_FOLDER = "gathered-audit";
const HEADS_FILE = "heads.json";

/** State of a source's chain. */
export interface SourceState {
  /** Grows with every break. */
  readonly generation: number;
  /** The last accepted line; undefined before the first of this generation. */
  readonly head: ChainHead | undefined;
  /** Breaks that were explained, such as a restore; absent for none. */
  readonly explained?: number;
  /** The last break, until it is judged. */
  readonly suspicion?: Suspicion;
}

/** A break that may still be explained. */
export interface Suspicion {
  readonly reason: string;
  /** Number of the last accepted line before it. */
  readonly knownSeq: number;
}

/** A place in the gathered lines. */
export interface CopyPlace {
  /** Number in the file's name. */
  readonly file: number;
  /** Bytes from the file's start. */
  readonly offset: number;
}

/** Options of the copies. */
export interface AuditCopiesOptions {
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** For tests. */
  readonly fileMaxBytes?: number;
  readonly filesKept?: number;
}

/** The gathered lines. Opened once per data folder. */
export class AuditCopies {
  readonly #options: AuditCopiesOptions;
  readonly #folder: string;
  readonly #states: Map<string, SourceState>;
  /** State on stable storage; lines that could not be written are fetched again. */
  #flushed: Map<string, SourceState>;
  #pending: string[] = [];
  #file: AuditFile;
  #bytes: number;
  #running: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #headsSavedMs: number;
  #isClosed = false;

  private constructor(options: AuditCopiesOptions, folder: string, found: Found) {
    this.#options = options;
    this.#folder = folder;
    this.#states = found.states;
    this.#flushed = new Map(found.states);
    this.#file = found.file;
    this.#bytes = found.bytes;
    this.#headsSavedMs = options.clock.steadyMs();
  }

  /** Opens the folder. A line that a crash has torn is cut off and gathered again. */
  static async open(options: AuditCopiesOptions): Promise<AuditCopies> {
    const folder = join(options.dataFolder, COPIES_FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await removeLeftovers(join(folder, HEADS_FILE));
    return new AuditCopies(options, folder, await findStates(folder));
  }

  /** State of each source's chain. */
  states(): ReadonlyMap<string, SourceState> {
    return this.#states;
  }

  /**
   * Takes lines that follow a source's head, as they were written. Stops at the first that does not follow;
   * returns the reason and the number taken. The first line of a generation needs no predecessor.
   */
  take(
    source: string,
    lines: readonly string[],
  ): { readonly taken: number; readonly problem: string | undefined } {
    const known = this.#states.get(source) ?? { generation: 1, head: undefined };
    const { generation, head: before } = known;
    const gatheredAt = Math.floor(this.#options.clock.wallMs() / 1000);
    let head = before;
    let problem: string | undefined;
    let taken = 0;
    for (const text of lines) {
      problem = problemOf(text, head);
      if (problem !== undefined) break;
      head = { seq: readLine(text)?.seq ?? 0, hash: hashOf(text) };
      this.#pending.push(copiedText({ gatheredAt, source, generation, text, broken: undefined }));
      taken++;
    }
    if (head !== before) this.#states.set(source, { ...known, head });
    this.#schedule();
    return { taken, problem };
  }

  /**
   * Records a break of a source's chain, and begins a new one; a suspected break is judged later, even after
   * a restart.
   */
  startOver(source: string, reason: string, isSuspected = false): void {
    const generation = (this.#states.get(source)?.generation ?? 1) + 1;
    this.#note(source, generation, `${isSuspected ? SUSPECTED : ""}${reason}`);
  }

  /** Records an innocent reason for the break before the current chain of a source. */
  explain(source: string, reason: string): void {
    this.#note(source, this.#states.get(source)?.generation ?? 1, `${EXPLAINED}${reason}`);
  }

  /** Records an accusation for the last suspected break. */
  accuse(source: string): void {
    const known = this.#states.get(source);
    if (known?.suspicion === undefined) return;
    this.#note(source, known.generation, `${ACCUSED}${known.suspicion.reason}`);
  }

  /** Resolves when all taken lines are on stable storage, or cannot be written. */
  async flush(): Promise<void> {
    while (this.#pending.length > 0 || this.#running !== undefined) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      this.#running ??= this.#write().finally(() => {
        this.#running = undefined;
      });
      await this.#running;
    }
  }

  /** End of the lines on stable storage. */
  get end(): CopyPlace {
    return { file: this.#file.firstSeq, offset: this.#bytes };
  }

  /** The files, oldest first. */
  files(): Promise<AuditFile[]> {
    return auditFiles(this.#folder);
  }

  /** Saves everything and ends. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    this.#cancelTimer?.();
    await this.#saveHeads().catch((error: unknown) => this.#tell(error));
  }

  #note(source: string, generation: number, note: string): void {
    const gatheredAt = Math.floor(this.#options.clock.wallMs() / 1000);
    const line = {
      gatheredAt,
      source,
      generation,
      text: undefined,
      broken: note.replaceAll(/[\r\n\t]/g, " "),
    };
    this.#pending.push(copiedText(line));
    this.#states.set(source, stateAfter(this.#states.get(source), line));
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isClosed || this.#pending.length === 0 || this.#cancelTimer !== undefined) return;
    this.#cancelTimer = this.#options.clock.after(AUDIT_COPY_FLUSH_INTERVAL_MS, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  async #write(): Promise<void> {
    const lines = this.#pending;
    const states = new Map(this.#states);
    this.#pending = [];
    if (lines.length === 0) return;
    try {
      if (this.#bytes >= (this.#options.fileMaxBytes ?? AUDIT_COPY_FILE_BYTES)) await this.#nextFile();
      const bytes = Buffer.from(`${lines.join("\n")}\n`);
      await this.#append(bytes);
      this.#bytes += bytes.length;
      this.#flushed = states;
      const { clock } = this.#options;
      if (clock.steadyMs() - this.#headsSavedMs >= AUDIT_HEADS_INTERVAL_MS) await this.#saveHeads();
    } catch (error) {
      this.#tell(error);
      await this.#leaveFile();
      // Unwritten lines are dropped, and so fetched again.
      this.#pending = [];
      for (const [source, state] of this.#flushed) this.#states.set(source, state);
      for (const source of this.#states.keys()) if (!this.#flushed.has(source)) this.#states.delete(source);
    }
  }

  /** At an explicit offset, so that the next write replaces one that failed halfway. */
  async #append(bytes: Buffer): Promise<void> {
    const isNew = this.#bytes === 0;
    const handle = await open(this.#file.path, isNew ? "w" : "r+", 0o600);
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, this.#bytes + done);
        done += bytesWritten;
      }
      await handle.datasync();
    } finally {
      await handle.close();
    }
    if (isNew) await syncDirectory(this.#folder);
  }

  /** After a failed flush the file's end is uncertain: later lines go into another file. */
  async #leaveFile(): Promise<void> {
    if (this.#bytes === 0) return;
    await truncate(this.#file.path, this.#bytes).catch(() => undefined);
    this.#file = auditFile(this.#folder, this.#file.firstSeq + 1);
    this.#bytes = 0;
  }

  async #nextFile(): Promise<void> {
    this.#file = auditFile(this.#folder, this.#file.firstSeq + 1);
    this.#bytes = 0;
    await this.#saveHeads();
    const files = await this.files();
    const kept = (this.#options.filesKept ?? AUDIT_COPY_FILES_KEPT) - 1;
    for (const { path } of files.slice(0, Math.max(0, files.length - kept))) await rm(path, { force: true });
  }

  async #saveHeads(): Promise<void> {
    this.#headsSavedMs = this.#options.clock.steadyMs();
    const sources = Object.fromEntries(
      [...this.#flushed].map(([source, { head, ...rest }]) => [source, { ...rest, ...head }]),
    );
    const text = JSON.stringify({ schema: 1, ...this.end, sources });
    await writeFileAtomic(join(this.#folder, HEADS_FILE), `${text}\n`);
  }

  #tell(error: unknown): void {
    this.#options.log.error("audit_copies_not_saved", { error: errorText(error) });
  }
}

/** Reason why a line does not follow; undefined when it does. */
function problemOf(text: string, head: ChainHead | undefined): string | undefined {
  const line = readLine(text);
  if (line === undefined || text.length > AUDIT_GATHERED_LINE_MAX_BYTES || /[\r\n]/.test(text)) {
    return `what follows line ${head?.seq ?? 0} is no line of an audit log`;
  }
  if (head === undefined) return undefined;
  if (line.seq !== head.seq + 1) return `line ${line.seq} came where line ${head.seq + 1} should be`;
  if (line.prev !== head.hash)
    return `line ${line.seq} does not follow from line ${head.seq} as it was gathered`;
  return undefined;
}

interface Found {
  readonly states: Map<string, SourceState>;
  readonly file: AuditFile;
  readonly bytes: number;
}

/** States of the chains: the saved ones, and the lines since. */
async function findStates(folder: string): Promise<Found> {
  const files = await auditFiles(folder);
  const last = files.at(-1);
  const told = await readHeads(folder);
  const states = told?.states ?? new Map<string, SourceState>();
  if (last === undefined) return { states, file: auditFile(folder, (told?.place.file ?? 0) + 1), bytes: 0 };
  // A stop between two files: the next one is missing yet, and the one before it is full.
  if (told !== undefined && last.firstSeq < told.place.file) {
    return { states, file: auditFile(folder, told.place.file), bytes: 0 };
  }
  let bytes = 0;
  for (const file of files) {
    if (told !== undefined && file.firstSeq < told.place.file) continue;
    bytes = 0;
    for await (const { text, offset, end, isWhole } of linesOf(file.path)) {
      if (!isWhole) {
        if (file === last) await truncate(file.path, offset);
        break;
      }
      bytes = end;
      const line = readCopied(text);
      // A damaged line says nothing here, and `grove audit verify` names it; those behind it may be the last copies.
      if (line === undefined) continue;
      if (told !== undefined && file.firstSeq === told.place.file && offset < told.place.offset) continue;
      states.set(line.source, stateAfter(states.get(line.source), line));
    }
  }
  return { states, file: last, bytes };
}

/** The state of a source after a line. */
function stateAfter(before: SourceState | undefined, line: CopiedLine): SourceState {
  const { generation, text, broken } = line;
  const { suspicion, ...known } = before ?? { head: undefined };
  if (broken?.startsWith(EXPLAINED) === true) {
    return { ...known, generation, explained: (before?.explained ?? 0) + 1 };
  }
  if (broken?.startsWith(ACCUSED) === true) return { ...known, generation };
  if (broken?.startsWith(SUSPECTED) === true) {
    const found = { reason: broken.slice(SUSPECTED.length), knownSeq: before?.head?.seq ?? 0 };
    return { ...known, generation, head: undefined, suspicion: found };
  }
  if (broken !== undefined) return { ...known, generation, head: undefined };
  const seq = text === undefined ? undefined : readLine(text)?.seq;
  const head = seq === undefined ? undefined : { seq, hash: hashOf(text ?? "") };
  return { ...known, generation, head, ...(suspicion === undefined ? {} : { suspicion }) };
}

async function readHeads(
  folder: string,
): Promise<{ place: CopyPlace; states: Map<string, SourceState> } | undefined> {
  try {
    const value = JSON.parse(await readFile(join(folder, HEADS_FILE), "utf8")) as {
      readonly file: unknown;
      readonly offset: unknown;
      readonly sources: Readonly<
        Record<
          string,
          Partial<ChainHead> & Readonly<Partial<Record<"generation" | "explained" | "suspicion", unknown>>>
        >
      >;
    };
    if (typeof value.file !== "number" || typeof value.offset !== "number") return undefined;
    const states = new Map<string, SourceState>();
    for (const [source, { generation, explained, suspicion, seq, hash }] of Object.entries(value.sources)) {
      if (typeof generation !== "number") return undefined;
      const head = typeof seq === "number" && typeof hash === "string" ? { seq, hash } : undefined;
      states.set(source, {
        generation,
        head,
        ...(typeof explained === "number" ? { explained } : {}),
        ...(isSuspicion(suspicion) ? { suspicion } : {}),
      });
    }
    return { place: { file: value.file, offset: value.offset }, states };
  } catch {
    // Everything is read again: slower, but correct.
    return undefined;
  }
}

function isSuspicion(value: unknown): value is Suspicion {
  if (typeof value !== "object" || value === null) return false;
  const { reason, knownSeq } = value as Partial<Record<keyof Suspicion, unknown>>;
  return typeof reason === "string" && typeof knownSeq === "number";
}
