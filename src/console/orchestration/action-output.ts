// The output of one running action: kept in a file, and sent in at most 30 events a second (D7, D8).
import type { FileHandle } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "#base/clock.ts";
import { endOf } from "./output-end.ts";

/** Pause between two output events of one action: at most 30 a second (decision D8). */
const ACTION_EVENT_INTERVAL_MS = 34;
/** Text of one output event (decision D8): 256 KiB. */
const ACTION_EVENT_MAX_BYTES = 262_144;
/** Pending output of one action, for its event or the disk; beyond it the nodes' programs wait. */
const ACTION_OUTPUT_PENDING_BYTES = 2_097_152;
/** Kept output of one action (decision D7); the rest is counted and dropped. */
const ACTION_OUTPUT_MAX_BYTES = 268_435_456;
/** The newest output of a running action, kept in memory for clients that reconnect. */
const ACTION_OUTPUT_RECENT_BYTES = 524_288;
/** Bytes of each output stream that a record of the history keeps (decision D7): 64 KiB. */
export const ACTION_OUTPUT_KEPT_BYTES = 65_536;

/** One of a program's two streams. */
export type OutputStream = "stdout" | "stderr";

/** A line of the output file; `ts` is unix seconds. */
export interface OutputLine {
  readonly ts: number;
  readonly node_id: string;
  readonly stream: OutputStream;
  readonly data: string;
}

/** A line with its number and that of the entry before it, by which a client detects a gap. */
export interface OutputEntry extends OutputLine {
  readonly seq: number;
  readonly after_seq: number;
}

/** Dependencies of an action's output. */
export interface ActionOutputDeps {
  readonly clock: Clock;
  /** Undefined: the file could not be made, and only the ends are kept. Closed by `finish`. */
  readonly file: FileHandle | undefined;
  /** Receives each entry, at most 30 a second. */
  readonly onEntry: (entry: OutputEntry) => void;
  /** Receives a write failure: the file has nothing after it. */
  readonly onFailure: (error: unknown) => void;
}

/** One stream of one node. */
interface Source {
  readonly nodeId: string;
  readonly stream: OutputStream;
  readonly decoder: StringDecoder;
  pieces: string[];
  pendingBytes: number;
  end: string;
  isCut: boolean;
}

interface Recent {
  readonly entry: OutputEntry;
  readonly bytes: number;
}

/** Takes output until `finish`; pending entries are still sent after that. */
export class ActionOutput {
  readonly #deps: ActionOutputDeps;
  readonly #sources = new Map<string, Source>();
  readonly #recent: Recent[] = [];
  readonly #untold: OutputEntry[] = [];
  readonly #stopTicking: () => void;
  readonly #told = Promise.withResolvers<void>();
  #recentBytes = 0;
  #recentFrom = 0;
  #pendingBytes = 0;
  #unwrittenBytes = 0;
  #seq = 0;
  #lastWrite: Promise<void> = Promise.resolve();
  #canWrite: boolean;
  #isFinished = false;
  #waiting: (() => void)[] = [];

  constructor(deps: ActionOutputDeps) {
    this.#deps = deps;
    this.#canWrite = deps.file !== undefined;
    this.#stopTicking = deps.clock.every(ACTION_EVENT_INTERVAL_MS, () => this.#tick());
  }

  /** Number of the newest entry. */
  get newest(): number {
    return this.#seq;
  }

  /** Resolves when the output is finished and every entry is sent. */
  get told(): Promise<void> {
    return this.#told.promise;
  }

  /** Takes bytes; a caller that gets a promise waits for it before the next call. */
  append(nodeId: string, stream: OutputStream, bytes: Buffer): Promise<void> | undefined {
    const source = this.#sourceOf(nodeId, stream);
    const text = source.decoder.write(bytes);
    this.#take(source, text);
    const waiting = this.#pendingBytes + this.#unwrittenBytes;
    if (waiting <= ACTION_OUTPUT_PENDING_BYTES) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The end of a stream's output, and whether something was cut before it. */
  endOf(nodeId: string, stream: OutputStream): { readonly text: string; readonly isCut: boolean } {
    const source = this.#sources.get(keyOf(nodeId, stream));
    if (source === undefined) return { text: "", isCut: false };
    const text = endOf(source.end, ACTION_OUTPUT_KEPT_BYTES);
    return { text, isCut: source.isCut || text !== source.end };
  }

  /** The entries in memory behind a number, and the lowest number behind which none is missing. */
  recent(afterSeq: number): { readonly entries: readonly OutputEntry[]; readonly from: number } {
    const toldUpTo = this.#untold[0]?.after_seq ?? this.#seq;
    const entries = this.#recent.map(({ entry }) => entry);
    return {
      entries: entries.filter(({ seq }) => seq > afterSeq && seq <= toldUpTo),
      from: this.#recentFrom,
    };
  }

  /** Ends the output; resolves when all of it is in the file. */
  async finish(): Promise<void> {
    if (this.#isFinished) return;
    this.#isFinished = true;
    for (const source of this.#sources.values()) this.#take(source, source.decoder.end());
    while (this.#recordNext()) {
      // Drains the pending output.
    }
    await this.#lastWrite;
    await this.#deps.file?.close().catch((error: unknown) => this.#deps.onFailure(error));
    this.#settleTold();
  }

  #sourceOf(nodeId: string, stream: OutputStream): Source {
    const key = keyOf(nodeId, stream);
    const known = this.#sources.get(key);
    if (known !== undefined) return known;
    const decoder = new StringDecoder("utf8");
    const source: Source = { nodeId, stream, decoder, pieces: [], pendingBytes: 0, end: "", isCut: false };
    this.#sources.set(key, source);
    return source;
  }

  #take(source: Source, text: string): void {
    if (text === "") return;
    source.end += text;
    if (source.end.length > 4 * ACTION_OUTPUT_KEPT_BYTES) {
      source.end = endOf(source.end, ACTION_OUTPUT_KEPT_BYTES);
      source.isCut = true;
    }
    // No piece is longer than an event, at up to four bytes per character.
    const most = ACTION_EVENT_MAX_BYTES / 4;
    for (let at = 0; at < text.length; ) {
      let end = Math.min(at + most, text.length);
      if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--;
      const piece = text.slice(at, end);
      const bytes = Buffer.byteLength(piece);
      source.pieces.push(piece);
      source.pendingBytes += bytes;
      this.#pendingBytes += bytes;
      at = end;
    }
  }

  #tick(): void {
    if (this.#untold.length === 0) this.#recordNext();
    const entry = this.#untold.shift();
    if (entry !== undefined) this.#deps.onEntry(entry);
    this.#settleTold();
  }

  #settleTold(): void {
    if (!this.#isFinished || this.#untold.length > 0 || this.#pendingBytes > 0) return;
    this.#stopTicking();
    this.#told.resolve();
  }

  /** Makes an entry from the source that has waited longest; false when all are empty. */
  #recordNext(): boolean {
    for (const [key, source] of this.#sources) {
      if (source.pieces.length === 0) continue;
      // Reinserts the source behind the others: round-robin.
      this.#sources.delete(key);
      this.#sources.set(key, source);
      this.#record(source);
      return true;
    }
    return false;
  }

  #record(source: Source): void {
    let bytes = 0;
    const taken: string[] = [];
    for (let piece = source.pieces[0]; piece !== undefined; piece = source.pieces[0]) {
      const length = Buffer.byteLength(piece);
      if (taken.length > 0 && bytes + length > ACTION_EVENT_MAX_BYTES) break;
      bytes += length;
      taken.push(piece);
      source.pieces.shift();
    }
    source.pendingBytes -= bytes;
    this.#pendingBytes -= bytes;
    const { nodeId, stream } = source;
    const line = { ts: this.#deps.clock.wallMs() / 1_000, node_id: nodeId, stream, data: taken.join("") };
    const written = Buffer.from(`${JSON.stringify(line)}\n`);
    if (!this.#canWrite || this.#seq + written.length > ACTION_OUTPUT_MAX_BYTES) {
      source.isCut = true;
      this.#admit();
      return;
    }
    const entry = { seq: this.#seq + written.length, after_seq: this.#seq, ...line };
    this.#seq = entry.seq;
    this.#write(written);
    this.#untold.push(entry);
    this.#recent.push({ entry, bytes: written.length });
    this.#recentBytes += written.length;
    while (this.#recentBytes > ACTION_OUTPUT_RECENT_BYTES) {
      const oldest = this.#recent.shift();
      if (oldest === undefined) break;
      this.#recentBytes -= oldest.bytes;
      this.#recentFrom = oldest.entry.seq;
    }
  }

  #write(line: Buffer): void {
    this.#unwrittenBytes += line.length;
    this.#lastWrite = this.#lastWrite.then(async () => {
      try {
        if (this.#canWrite) await this.#deps.file?.appendFile(line);
      } catch (error) {
        this.#canWrite = false;
        this.#deps.onFailure(error);
      }
      this.#unwrittenBytes -= line.length;
      this.#admit();
    });
  }

  /** Resolves waiting appends once there is room. */
  #admit(): void {
    if (this.#pendingBytes + this.#unwrittenBytes > ACTION_OUTPUT_PENDING_BYTES / 2) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

function keyOf(nodeId: string, stream: OutputStream): string {
  return `${nodeId}\n${stream}`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
