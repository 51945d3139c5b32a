// The audit log of a process: acts are queued without waiting, flushed in groups, and read by a cursor (D24).
import { mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AuditAct } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { AUDIT_PAGE_LINES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { syncDirectory, writeFileAtomic } from "#os/atomic-file.ts";
import {
  AUDIT_FILES_KEPT,
  AUDIT_FOLDER,
  AUDIT_PAGE_BYTES,
  type AuditFile,
  auditFile,
  auditFiles,
  HEAD_FILE,
  linesOf,
  readHead,
} from "./audit-files.ts";
import { type AuditLine, CHAIN_START, type ChainHead, hashOf, lineAfter, readLine } from "./audit-line.ts";

/** Size of one file of the audit log; the next line begins another. */
const AUDIT_FILE_MAX_BYTES = 16_777_216;
/**
 * Audit lines that may wait for the disk, in bytes; more are dropped and counted in the next line written.
 */
export const AUDIT_PENDING_BYTES = 16_777_216;
/** Shortest interval between flushes of audit lines. */
export const AUDIT_FLUSH_INTERVAL_MS = 200;
/** The newest audit lines, kept in memory for followers of the log. */
export const AUDIT_RECENT_LINES = 1_000;

/** Options of the log. */
export interface AuditLogOptions {
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** For tests. */
  readonly fileMaxBytes?: number;
  readonly filesKept?: number;
}

/** Lines of the log after a cursor. */
export interface AuditPage {
  /** The lines as they were written, so that readers can check their hashes. */
  readonly lines: readonly string[];
  /** Number of the last line, or of the cursor when there is none: the next cursor. */
  readonly nextAfter: number;
  /** Number of the last line on stable storage. */
  readonly headSeq: number;
}

/** State of the writing. */
interface Tail {
  readonly head: ChainHead;
  readonly file: AuditFile;
  readonly bytes: number;
}

/** Lines that the head includes and the files lack. */
interface Gap {
  readonly expected: number;
  readonly found: number;
}

/** The log. Opened once per data folder; appends never wait and never throw. */
export class AuditLog {
  readonly #folder: string;
  readonly #options: AuditLogOptions;
  /** Head of the chain, waiting lines included. */
  #head: ChainHead;
  #pending: AuditLine[] = [];
  #pendingBytes = 0;
  #dropped = 0;
  /** Head of the chain on stable storage. */
  #flushed: ChainHead;
  #file: AuditFile;
  #fileBytes: number;
  #recent: AuditLine[] = [];
  #running: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #failure: string | undefined;
  #isClosed = false;

  private constructor(options: AuditLogOptions, folder: string, tail: Tail) {
    this.#options = options;
    this.#folder = folder;
    this.#head = tail.head;
    this.#flushed = tail.head;
    this.#file = tail.file;
    this.#fileBytes = tail.bytes;
  }

  /**
   * Opens the log of a data folder, or begins one. A line that a crash has torn is moved to a file beside the
   * log. Where lines before the head are missing, the chain goes on from the head, so that the gap stays
   * visible. Both are logged, neither is fatal.
   */
  static async open(options: AuditLogOptions): Promise<AuditLog> {
    const folder = join(options.dataFolder, AUDIT_FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { missing, ...tail } = await findTail(folder, options.log);
    const log = new AuditLog(options, folder, tail);
    if (missing !== undefined)
      log.append({ act: "audit.gap", actor: "node", subject: "audit", detail: { ...missing } });
    return log;
  }

  /** Reason why writing has ended; undefined without a failure. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /**
   * Queues an act. It is on stable storage after the next flush; acts beyond AUDIT_PENDING_BYTES are dropped
   * and counted.
   */
  append(act: AuditAct): void {
    if (this.#isClosed || this.#failure !== undefined) return;
    if (this.#pendingBytes > AUDIT_PENDING_BYTES) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0) {
      const dropped = this.#dropped;
      this.#dropped = 0;
      this.#add({ act: "audit.dropped", actor: "node", subject: "audit", detail: { lines: dropped } });
    }
    this.#add(act);
  }

  /**
   * Writes and flushes an act. Rejects with STORAGE_FAILED when that fails or the queue is full; after a
   * passing failure the line may still be written.
   */
  async write(act: AuditAct): Promise<void> {
    const { seq: before } = this.#head;
    this.append(act);
    const { seq } = this.#head;
    await this.flush();
    if (seq > before && this.#flushed.seq >= seq) return;
    throw new GroveError("STORAGE_FAILED", this.#failure ?? "the audit log cannot be written");
  }

  /** Resolves when all queued acts are on stable storage, or cannot be written. */
  async flush(): Promise<void> {
    while (this.#pending.length > 0 && this.#failure === undefined) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      if (!(await this.#flushOnce())) return;
    }
  }

  /** Lines on stable storage after a number, at most AUDIT_PAGE_LINES and AUDIT_PAGE_BYTES of them. */
  async read(after: number, limit: number): Promise<AuditPage> {
    const last = this.#flushed.seq;
    const wanted = Math.min(Math.max(1, limit), AUDIT_PAGE_LINES);
    const first = this.#recent[0]?.head.seq;
    const lines: string[] = [];
    let nextAfter = after;
    let bytes = 0;
    const take = (text: string, seq: number): boolean => {
      if (seq <= nextAfter) return true;
      if (
        seq > last ||
        lines.length >= wanted ||
        (lines.length > 0 && bytes + text.length > AUDIT_PAGE_BYTES)
      )
        return false;
      lines.push(text);
      bytes += text.length;
      nextAfter = seq;
      return true;
    };
    if (after < last) {
      if (first !== undefined && after + 1 >= first) {
        this.#recent.every(({ text, head }) => take(text, head.seq));
      } else await this.#readFiles(after, take);
    }
    return { lines, nextAfter, headSeq: last };
  }

  /** Flushes queued acts; later acts are dropped. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    this.#cancelTimer?.();
    await this.#running;
  }

  #add(act: AuditAct): void {
    const line = lineAfter(this.#head, act, this.#options.clock.wallMs());
    this.#head = line.head;
    this.#pending.push(line);
    this.#pendingBytes += line.text.length;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#cancelTimer !== undefined || this.#running !== undefined) return;
    this.#cancelTimer = this.#options.clock.after(AUDIT_FLUSH_INTERVAL_MS, () => {
      this.#cancelTimer = undefined;
      void this.#flushOnce();
    });
  }

  /** Writes queued lines; false when that failed for now. */
  async #flushOnce(): Promise<boolean> {
    if (this.#running !== undefined) {
      await this.#running;
      return true;
    }
    let isWritten = false;
    this.#running = this.#writePending().then(
      () => {
        isWritten = true;
      },
      (error: unknown) => this.#tellFailure(error),
    );
    await this.#running;
    this.#running = undefined;
    if (this.#pending.length > 0 && !this.#isClosed && this.#failure === undefined) this.#schedule();
    return isWritten;
  }

  async #writePending(): Promise<void> {
    // A copy: lines that arrive meanwhile wait for the next turn.
    const lines = [...this.#pending];
    if (lines.length === 0) return;
    if (this.#fileBytes > 0 && this.#fileBytes >= (this.#options.fileMaxBytes ?? AUDIT_FILE_MAX_BYTES)) {
      this.#file = auditFile(this.#folder, this.#flushed.seq + 1);
      this.#fileBytes = 0;
    }
    const bytes = Buffer.from(lines.map(({ text }) => `${text}\n`).join(""));
    await this.#writeAt(bytes);
    const last = lines.at(-1)?.head ?? this.#flushed;
    // The head is written after the lines: it never includes a line that a crash may still take.
    await writeFileAtomic(join(this.#folder, HEAD_FILE), `${JSON.stringify(last)}\n`);
    this.#fileBytes += bytes.length;
    this.#flushed = last;
    this.#pending = this.#pending.slice(lines.length);
    this.#pendingBytes -= lines.reduce((sum, { text }) => sum + text.length, 0);
    this.#recent = [...this.#recent, ...lines].slice(-AUDIT_RECENT_LINES);
    await this.#dropOldFiles();
  }

  /** At an explicit offset, so that the next write replaces one that failed halfway. */
  async #writeAt(bytes: Buffer): Promise<void> {
    const isNew = this.#fileBytes === 0;
    const handle = await open(this.#file.path, isNew ? "w" : "r+", 0o600);
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, this.#fileBytes + done);
        done += bytesWritten;
      }
      await handle.datasync().catch((cause: unknown) => {
        // Bytes that a failed flush has lost may count as written the next time.
        this.#failure = `flushing ${this.#file.path} failed: ${errorText(cause)}`;
        throw cause;
      });
    } finally {
      await handle.close();
    }
    if (isNew) await syncDirectory(this.#folder);
  }

  async #dropOldFiles(): Promise<void> {
    if (this.#file.firstSeq <= 1 || this.#fileBytes === 0) return;
    const files = await auditFiles(this.#folder);
    const kept = this.#options.filesKept ?? AUDIT_FILES_KEPT;
    for (const { path } of files.slice(0, Math.max(0, files.length - kept))) await rm(path, { force: true });
  }

  async #readFiles(after: number, take: (text: string, seq: number) => boolean): Promise<void> {
    const files = await auditFiles(this.#folder);
    const from = Math.max(
      0,
      files.findLastIndex(({ firstSeq }) => firstSeq <= after + 1),
    );
    for (const { path } of files.slice(from)) {
      for await (const { text, isWhole } of linesOf(path)) {
        const line = isWhole ? readLine(text) : undefined;
        if (line !== undefined && !take(text, line.seq)) return;
      }
    }
  }

  #tellFailure(error: unknown): void {
    const { log } = this.#options;
    log.error("audit_failed", {
      error: errorText(error),
      waiting: this.#pending.length,
      final: this.#failure !== undefined,
    });
    if (this.#failure !== undefined) {
      this.#pending = [];
      this.#pendingBytes = 0;
    }
  }
}

/** The end of a log, after torn bytes were set aside. */
async function findTail(folder: string, log: Logger): Promise<Tail & { readonly missing?: Gap }> {
  const told = await readHead(folder);
  if (told === undefined) log.error("audit_head_unreadable", { folder });
  const file = (await auditFiles(folder)).at(-1);
  if (file === undefined) {
    const head = told ?? CHAIN_START;
    const tail = { head, file: auditFile(folder, head.seq + 1), bytes: 0 };
    return head.seq === 0
      ? tail
      : { ...tail, missing: tellGap({ expected: head.seq, found: 0 }, folder, log) };
  }
  let head: ChainHead | undefined;
  let bytes = 0;
  for await (const { text, offset, end, isWhole } of linesOf(file.path)) {
    const line = isWhole ? readLine(text) : undefined;
    if (line === undefined) {
      await setAside(file.path, offset, log);
      break;
    }
    head = { seq: line.seq, hash: hashOf(text) };
    bytes = end;
  }
  if (told !== undefined && (head === undefined || told.seq > head.seq)) {
    const found = head?.seq ?? file.firstSeq - 1;
    if (told.seq === found) return { head: told, file, bytes };
    return { head: told, file, bytes, missing: tellGap({ expected: told.seq, found }, folder, log) };
  }
  return { head: head ?? CHAIN_START, file, bytes };
}

function tellGap(gap: Gap, folder: string, log: Logger): Gap {
  log.error("audit_lines_missing", { folder, ...gap });
  return gap;
}

/** Moves everything from an offset on out of a file of the log, to a file beside it, whole lines above all. */
async function setAside(path: string, offset: number, log: Logger): Promise<void> {
  const handle = await open(path, "r+");
  try {
    const { size } = await handle.stat();
    // A file of the log is little more than 16 MiB long.
    const rest = Buffer.alloc(size - offset);
    await handle.read(rest, 0, rest.length, offset);
    await writeFile(`${path}.torn-${offset}`, rest, { mode: 0o600 }).catch((error: unknown) => {
      // On a full disk, which has torn it, the piece of a line that nobody was told of keeps no process from its start.
      if (rest.includes(10)) throw error;
      log.warn("audit_torn_line_lost", { path, offset, error: errorText(error) });
    });
    await handle.truncate(offset);
    await handle.sync();
  } finally {
    await handle.close();
  }
  log.warn("audit_torn_line", { path, offset });
}
