// Rows of one slot length in files of fixed size, one per node, with a fixed place for each slot.
import { constants, type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { crc32 } from "#os/crc32.ts";
import { RING_COLUMNS } from "./columns.ts";

/** Nodes and cluster with rows beyond the last hour; one more replaces the longest silent. 1 GB in all. */
export const LONG_HISTORY_NODES_MAX = 257;

/** Rows that are checked or aggregated before other work runs: about a millisecond. */
export const ROWS_PER_TURN = 500;

/** Length of slots, and how many of them are kept. */
export interface RingForm {
  /** Length of a slot. */
  readonly seconds: number;
  readonly slots: number;
}

/** Rows of a node as its file holds them. */
export interface RingRange {
  /** The oldest slot that is kept; undefined without any. */
  readonly oldest: number | undefined;
  readonly newest: number | undefined;
  /** A value; NaN for a gap. */
  readonly at: (column: number, slot: number) => number;
}

/** A slot's number, its values, and the CRC-32 of both. */
const RECORD_BYTES = 4 + 4 * RING_COLUMNS.length + 4;
const FIGURES_AT = 4;
const CRC_AT: number = RECORD_BYTES - 4;

/** Ids of nodes, and of the cluster, have this form. */
const FILE_NAME = /^[a-z0-9-]{1,63}$/;

interface Extent {
  oldest: number | undefined;
  newest: number | undefined;
}

/** The files of one slot length. Records that a power cut tore, and overwritten ones, are gaps. */
export class LongHistoryFiles {
  readonly form: RingForm;
  readonly #folder: string;
  readonly #extents = new Map<string, Extent>();

  private constructor(folder: string, form: RingForm) {
    this.form = form;
    this.#folder = folder;
  }

  /** Opens the files of a folder, and creates the folder if missing. */
  static async open(folder: string, form: RingForm, nowSlot: number): Promise<LongHistoryFiles> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const rows = new LongHistoryFiles(folder, form);
    for (const name of await readdir(folder)) {
      const id = rows.#idOf(name);
      if (id !== undefined) await rows.#look(id, nowSlot);
    }
    return rows;
  }

  /** True when rows of a node are kept. */
  has(id: string): boolean {
    return this.#extents.get(id)?.newest !== undefined;
  }

  /** The newest kept slot of a node; undefined without any. */
  newest(id: string): number | undefined {
    return this.#extents.get(id)?.newest;
  }

  /** Writes a node's rows by slot, in ascending order; at the limit it replaces the longest silent node. */
  async write(id: string, rows: ReadonlyMap<number, Float32Array>): Promise<void> {
    if (rows.size === 0 || !FILE_NAME.test(id)) return;
    if (!this.#extents.has(id) && this.#extents.size >= LONG_HISTORY_NODES_MAX) await this.#makeRoom();
    const file = await open(this.#path(id), constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      for (const [slot, figures] of rows) await this.#put(file, slot, figures);
    } finally {
      await file.close();
    }
    const extent = this.#extents.get(id) ?? { oldest: undefined, newest: undefined };
    const slots = [...rows.keys()];
    const newest = slots.at(-1) ?? 0;
    extent.newest = newest;
    extent.oldest = Math.max(
      Math.min(extent.oldest ?? newest, slots[0] ?? newest),
      newest - this.form.slots + 1,
    );
    this.#extents.set(id, extent);
  }

  /** Reads the rows of a node from one slot to another, at most as many as are kept. */
  async read(id: string, first: number, last: number): Promise<RingRange> {
    const extent = this.#extents.get(id);
    const { oldest, newest } = extent ?? { oldest: undefined, newest: undefined };
    const from = Math.max(first, last - this.form.slots + 1);
    const length = Math.max(0, last - from + 1);
    const bytes = Buffer.alloc(length * RECORD_BYTES);
    if (oldest !== undefined && length > 0) await this.#fill(id, from, bytes);
    const isKept = new Uint8Array(length);
    for (let index = 0; index < length; index++) {
      if (index % ROWS_PER_TURN === ROWS_PER_TURN - 1) await nextTurn();
      if (isRecordOf(bytes, index * RECORD_BYTES, from + index)) isKept[index] = 1;
    }
    return {
      oldest,
      newest,
      at(column, slot) {
        const index = slot - from;
        if (isKept[index] !== 1) return Number.NaN;
        return bytes.readFloatLE(index * RECORD_BYTES + FIGURES_AT + 4 * column);
      },
    };
  }

  async #put(file: FileHandle, slot: number, figures: Float32Array): Promise<void> {
    const record = Buffer.alloc(RECORD_BYTES);
    record.writeUInt32LE(slot, 0);
    RING_COLUMNS.forEach((_, column) => {
      record.writeFloatLE(figures[column] ?? Number.NaN, FIGURES_AT + 4 * column);
    });
    record.writeUInt32LE(crc32(record.subarray(0, CRC_AT)), CRC_AT);
    await file.write(record, 0, RECORD_BYTES, (slot % this.form.slots) * RECORD_BYTES);
  }

  /** Fills a buffer with the records of consecutive slots; the ring's end may lie between them. */
  async #fill(id: string, first: number, bytes: Buffer): Promise<void> {
    const file = await this.#open(id);
    if (file === undefined) return;
    try {
      const start = (first % this.form.slots) * RECORD_BYTES;
      const beforeWrap = Math.min(bytes.length, this.form.slots * RECORD_BYTES - start);
      await file.read(bytes, 0, beforeWrap, start);
      if (beforeWrap < bytes.length) await file.read(bytes, beforeWrap, bytes.length - beforeWrap, 0);
    } finally {
      await file.close();
    }
  }

  async #open(id: string): Promise<FileHandle | undefined> {
    try {
      return await open(this.#path(id), "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /**
   * Finds the slots that a file holds. Those in the future do not count, unless it has no others: then the
   * clock is behind, as on a machine that starts without network time.
   */
  async #look(id: string, nowSlot: number): Promise<void> {
    const bytes = Buffer.alloc(this.form.slots * RECORD_BYTES);
    await this.#fill(id, 0, bytes);
    const found: number[] = [];
    for (let at = 0; at < bytes.length; at += RECORD_BYTES) {
      const slot = bytes.readUInt32LE(at);
      if (slot > 0 && isRecordOf(bytes, at, slot)) found.push(slot);
    }
    const past = found.filter((slot) => slot <= nowSlot);
    const [slots, end] = past.length > 0 ? [past, nowSlot] : [found, Math.max(...found)];
    const kept = slots.filter((slot) => slot > end - this.form.slots);
    if (kept.length === 0) await rm(this.#path(id), { force: true });
    else this.#extents.set(id, { oldest: Math.min(...kept), newest: Math.max(...kept) });
  }

  async #makeRoom(): Promise<void> {
    const [oldest] = [...this.#extents].sort(([, a], [, b]) => (a.newest ?? 0) - (b.newest ?? 0));
    if (oldest === undefined) return;
    await rm(this.#path(oldest[0]), { force: true });
    this.#extents.delete(oldest[0]);
  }

  #path(id: string): string {
    return join(this.#folder, `${id}${this.#ending}`);
  }

  get #ending(): string {
    return `.${this.form.seconds}s`;
  }

  #idOf(name: string): string | undefined {
    return name.endsWith(this.#ending) ? name.slice(0, -this.#ending.length) : undefined;
  }
}

function isRecordOf(bytes: Buffer, at: number, slot: number): boolean {
  if (bytes.readUInt32LE(at) !== slot) return false;
  return bytes.readUInt32LE(at + CRC_AT) === crc32(bytes.subarray(at, at + CRC_AT));
}
