// Compares the bucket with rows, for `fsck --list`: objects without a row, and rows without an object.
import { chunkKey, nameOfKey } from "./chunk-blocks.ts";
import type { StoreRequests } from "./store-requests.ts";

/** A difference between bucket and rows. */
export interface BucketDifference {
  readonly kind: "foreign" | "orphan" | "missing" | "length";
  /** The object's key, or the chunk's name where there is no object. */
  readonly name: string;
}

/** A row's view of a chunk. */
export interface ListedChunk {
  readonly name: string;
  readonly length: number;
}

/** Rows in the order of their names, as the listing has them. */
export interface ListedChunks {
  /** Chunks that must have an object, after a name. */
  page(afterName: string, limit: number): Promise<readonly ListedChunk[]>;
  /** Those of the names that may have an object besides: dropped chunks, and names of blocks with a row. */
  explained(names: readonly string[]): Promise<ReadonlySet<string>>;
}

const PAGE = 1_000;

/**
 * Walks the bucket and the rows side by side. Nothing may remove chunks meanwhile; chunks that are made
 * meanwhile are explained by their blocks. An object outside the names of chunks is foreign, unless it is the
 * marker or a probe.
 */
export async function* compareBucket(
  requests: StoreRequests,
  prefix: string,
  rows: ListedChunks,
): AsyncGenerator<BucketDifference> {
  const cursor = new RowCursor(rows);
  let after = "";
  for (;;) {
    const page = await requests.list(`${prefix}chunks/`, after);
    const unknown: string[] = [];
    for (const { key, length } of page.objects) {
      const name = nameOfKey(prefix, key);
      if (name === undefined) {
        yield { kind: "foreign", name: key };
        continue;
      }
      for (let row = await cursor.peek(); row !== undefined && row.name < name; row = await cursor.peek()) {
        cursor.skip();
        if (await isMissing(requests, prefix, row)) yield { kind: "missing", name: row.name };
      }
      const row = await cursor.peek();
      if (row?.name !== name) unknown.push(name);
      else {
        cursor.skip();
        if (row.length !== length) yield { kind: "length", name };
      }
    }
    if (unknown.length > 0) {
      const explained = await rows.explained(unknown);
      for (const name of unknown) if (!explained.has(name)) yield { kind: "orphan", name };
    }
    after = page.objects.at(-1)?.key ?? after;
    if (page.isLast || page.objects.length === 0) break;
  }
  for (let row = await cursor.peek(); row !== undefined; row = await cursor.peek()) {
    cursor.skip();
    if (await isMissing(requests, prefix, row)) yield { kind: "missing", name: row.name };
  }
}

/** Asks for the object by itself: a chunk that was made after its page was listed has a row already. */
async function isMissing(requests: StoreRequests, prefix: string, { name }: ListedChunk): Promise<boolean> {
  return (await requests.headOf(chunkKey(prefix, name))) === undefined;
}

class RowCursor {
  readonly #rows: ListedChunks;
  #page: readonly ListedChunk[] = [];
  #at = 0;
  #after = "";
  #isLast = false;

  constructor(rows: ListedChunks) {
    this.#rows = rows;
  }

  async peek(): Promise<ListedChunk | undefined> {
    if (this.#at === this.#page.length && !this.#isLast) {
      this.#page = await this.#rows.page(this.#after, PAGE);
      this.#at = 0;
      this.#isLast = this.#page.length === 0;
    }
    return this.#page[this.#at];
  }

  skip(): void {
    this.#after = this.#page[this.#at++]?.name ?? this.#after;
  }
}
