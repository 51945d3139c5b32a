// The audit lines of all nodes in one place that is not theirs: appended as they come, each chain followed line by line (D24).
import { mkdir, open, readFile, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { removeLeftovers, syncDirectory, writeFileAtomic } from "#os/atomic-file.ts";
import { type AuditFile, auditFile, auditFiles, linesOf } from "./audit-files.ts";
import { type ChainHead, hashOf, readLine } from "./audit-line.ts";
import { ACCUSED, type CopiedLine, copiedText, EXPLAINED, readCopied, SUSPECTED } from "./copied-line.ts";

/** One file of the audit lines that the console has gathered; the next begins another. */
const AUDIT_COPY_FILE_BYTES = 16_777_216;
/** Files of gathered audit lines that are kept, 2 GiB in all; the oldest goes first. */
const AUDIT_COPY_FILES_KEPT = 128;
/** Longest audit line that is taken from a node. */
const AUDIT_GATHERED_LINE_MAX_BYTES = 65_536;
/** How often gathered lines are flushed together at most. */
const AUDIT_COPY_FLUSH_INTERVAL_MS = 1_000;
/** How often it is written down where each chain stands; a start reads again what came since. */
const AUDIT_HEADS_INTERVAL_MS = 60_000;

/** Folder of the gathered lines inside the console's data folder. */
export const COPIES_FOLDER = "gathered-audit";
const HEADS_FILE = "heads.json";

/** Where a source's chain stands. */
export interface SourceState {
  /** Goes up with every break. */
  readonly generation: number;
  /** The last line that was taken; undefined before the first of this generation. */
  readonly head: ChainHead | undefined;
  /** Breaks that had a reason which accuses nobody; absent where there was none. */
  readonly explained?: number;
  /** The last break, while nobody has judged it. */
  readonly suspicion?: Suspicion;
}

/** A break that may have a reason which accuses nobody. */
export interface Suspicion {
  readonly reason: string;
  /** Number of the last line that was taken before it. */
  readonly knownSeq: number;
}

/** A place in the gathered lines. */
export interface CopyPlace {
  /** Number that the file begins with. */
  readonly file: number;
  /** Bytes from its beginning. */
  readonly offset: number;
}

/** What the copies are kept with. */
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
  /** What lies on stable storage; lines that could not be written are asked for again. */
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

  /** Opens what is there. A line that a crash has torn is cut off: it is gathered again. */
  static async open(options: AuditCopiesOptions): Promise<AuditCopies> {
    const folder = join(options.dataFolder, COPIES_FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await removeLeftovers(join(folder, HEADS_FILE));
    return new AuditCopies(options, folder, await findStates(folder));
  }

  /** Where each source's chain stands. */
  states(): ReadonlyMap<string, SourceState> {
    return this.#states;
  }

  /**
   * Takes lines that follow a source's head, as they were written. At the first that does not follow, it stops and says why, and how many
   * were taken; a first line of a generation follows from anything.
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

  /** Notes that a source's chain broke, and begins another for it; who is only suspected of it is judged later, whatever happens to the process. */
  startOver(source: string, reason: string, isSuspected = false): void {
    const generation = (this.#states.get(source)?.generation ?? 1) + 1;
    this.#note(source, generation, `${isSuspected ? SUSPECTED : ""}${reason}`);
  }

  /** Notes that the break before the present chain of a source has a reason that accuses nobody. */
  explain(source: string, reason: string): void {
    this.#note(source, this.#states.get(source)?.generation ?? 1, `${EXPLAINED}${reason}`);
  }

  /** Notes that somebody was accused of the break that was suspected last. */
  accuse(source: string): void {
    const known = this.#states.get(source);
    if (known?.suspicion === undefined) return;
    this.#note(source, known.generation, `${ACCUSED}${known.suspicion.reason}`);
  }

  /** Resolves when everything taken so far is on stable storage, or cannot be written. */
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

  /** Where the lines that are on stable storage end. */
  get end(): CopyPlace {
    return { file: this.#file.firstSeq, offset: this.#bytes };
  }

  /** Files that are kept, oldest first. */
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
      // What was not written is forgotten, and so asked for again.
      this.#pending = [];
      for (const [source, state] of this.#flushed) this.#states.set(source, state);
      for (const source of this.#states.keys()) if (!this.#flushed.has(source)) this.#states.delete(source);
    }
  }

  /** At a place of its own, so that a write that has failed halfway is written over by the next. */
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

  /** After a failed flush nobody knows what a file holds behind what was flushed before: what comes next goes into another. */
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

/** Why a line does not follow; undefined when it does. */
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

/** Where the chains stand: what was written down, and what came since. */
async function findStates(folder: string): Promise<Found> {
  const files = await auditFiles(folder);
  const last = files.at(-1);
  const told = await readHeads(folder);
  const states = told?.states ?? new Map<string, SourceState>();
  if (last === undefined) return { states, file: auditFile(folder, (told?.place.file ?? 0) + 1), bytes: 0 };
  // A stop between two files: the one that was to come is not there yet, and the one before it is full.
  if (told !== undefined && last.firstSeq < told.place.file) {
    return { states, file: auditFile(folder, told.place.file), bytes: 0 };
  }
  let bytes = 0;
  for (const file of files) {
    if (told !== undefined && file.firstSeq < told.place.file) continue;
    bytes = 0;
    for await (const { text, offset, isWhole } of linesOf(file.path)) {
      const line = isWhole ? readCopied(text) : undefined;
      if (line === undefined) {
        if (file === last) await truncate(file.path, offset);
        break;
      }
      bytes = offset + Buffer.byteLength(text) + 1;
      if (told !== undefined && file.firstSeq === told.place.file && offset < told.place.offset) continue;
      states.set(line.source, stateAfter(states.get(line.source), line));
    }
  }
  return { states, file: last, bytes };
}

/** What a line makes of its source's state. */
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
    // Everything is read again: slower, and no less right.
    return undefined;
  }
}

function isSuspicion(value: unknown): value is Suspicion {
  if (typeof value !== "object" || value === null) return false;
  const { reason, knownSeq } = value as Partial<Record<keyof Suspicion, unknown>>;
  return typeof reason === "string" && typeof knownSeq === "number";
}
