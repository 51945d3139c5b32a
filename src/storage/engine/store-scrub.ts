// The scrub of the shared engine: reads what the roots held here have in the object store and in small files.
import type pg from "pg";
import { BLOCK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { type ChunkFacts, checksumProblem } from "#storage/chunks/chunk-check.ts";
import { ListChecksum, type ListedChunk } from "#storage/chunks/list-checksum.ts";
import { ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";
import type { DamagedBytes, ScrubPass } from "#storage/contract/scrub-types.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import { isStoreProblem } from "#storage/object-store/store-error.ts";
import type { PassStep } from "#storage/scrub/pass-thread.ts";
import {
  type FileRow,
  FOUND_BYTES,
  LIST_PROBLEM,
  ROW_BYTES,
  smallFileProblem,
} from "#storage/scrub/scrub-reader.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import { type HeldRoots, nextRoot } from "./held-roots.ts";

const CHUNK_ROWS = 256;
/** With the bytes of small files. */
const FILE_ROWS = 64;
/** Times that a chunk is fetched before its bytes in the store count as damaged. */
const FETCHES_MAX = 2;

/** Dependencies of the scrub. */
export interface StoreScrubDeps {
  readonly line: SharedLine;
  readonly store: Pick<ObjectStore, "marker" | "prefix" | "requests">;
  readonly roots: Pick<HeldRoots, "all" | "withNumber">;
  /** Says whose chunk is about to be found damaged. */
  readonly noteDamaged: (chunkId: number, fileId: number) => void;
}

interface ChunkRow extends ChunkFacts {
  readonly id: number;
  readonly name: string;
  readonly root: number | null;
}

type Step = PassStep<ScrubPass, DamagedBytes>;

/** Reads everything of the roots that are held here, each once in a pass. */
export class StoreScrub {
  readonly #deps: StoreScrubDeps;

  constructor(deps: StoreScrubDeps) {
    this.#deps = deps;
  }

  /** The rest of a pass. Throws what pg and the store throw when they do not answer. */
  async *steps(from: ScrubPass): AsyncGenerator<Step> {
    let pass = from;
    if (pass.part === "chunks") {
      for await (const step of this.#chunkSteps(pass)) {
        ({ pass } = step);
        yield step;
      }
      pass = { ...pass, part: "files", position: 0 };
    }
    if (pass.part === "files") yield* this.#fileSteps(pass);
  }

  async *#chunkSteps(from: ScrubPass): AsyncGenerator<Step> {
    // The newest at the start of the pass is asked for here, since only here the database is.
    const lastChunk = from.lastChunk === 0 ? await this.#lastChunk() : from.lastChunk;
    let pass: ScrubPass = { ...from, lastChunk };
    for (;;) {
      const rows = await this.#ask<ChunkRow>(
        `SELECT c.id, c.name, c.length, c.crc32, c.block_crcs AS "blockCrcs",
           (SELECT f.content_id >> 32 FROM file_chunk f WHERE f.chunk_id = c.id LIMIT 1) AS root
         FROM chunk c WHERE c.refs > 0 AND c.id > $1 AND c.id <= $2 ORDER BY c.id LIMIT ${CHUNK_ROWS}`,
        [pass.position, lastChunk],
      );
      for (const row of rows) {
        pass = { ...pass, position: row.id };
        if (row.root === null || this.#deps.roots.withNumber(row.root) === undefined) continue;
        const problem = await chunkProblem(this.#deps.store, row);
        pass = { ...pass, readBytes: pass.readBytes + row.length };
        // It may have been dropped since the row was read.
        if (problem === undefined || !(await this.#isKept(row.id))) {
          yield { pass, cost: ROW_BYTES + row.length, found: undefined };
          continue;
        }
        pass = { ...pass, found: pass.found + 1 };
        this.#deps.noteDamaged(row.id, row.root * ROOT_STRIDE);
        yield { pass, cost: FOUND_BYTES, found: { kind: "chunk", chunkId: row.id, problem } };
      }
      if (rows.length < CHUNK_ROWS) return;
      yield { pass, cost: rows.length * ROW_BYTES, found: undefined };
    }
  }

  /** Number of the newest chunk, 0 without one. */
  async #lastChunk(): Promise<number> {
    const [row] = await this.#ask<{ last: number | null }>("SELECT max(id) AS last FROM chunk", []);
    return row?.last ?? 0;
  }

  async *#fileSteps(from: ScrubPass): AsyncGenerator<Step> {
    let pass = from;
    for (;;) {
      const range = this.#nextRange(pass.position);
      if (range === undefined) return;
      const rows = await this.#ask<FileRow>(
        `SELECT id, kind, size, crc32, version, content_id AS "contentId", data
         FROM inode LEFT JOIN inline_content ON inode_id = id WHERE id > $1 AND id < $2 ORDER BY id LIMIT ${FILE_ROWS}`,
        range,
      );
      let cost = ROW_BYTES;
      for (const row of rows) {
        cost += ROW_BYTES + (row.data?.length ?? 0);
        const list = row.contentId === null ? undefined : await this.#readList(row, row.contentId);
        cost += list?.cost ?? 0;
        const problem = list === undefined ? smallFileProblem(row) : list.problem;
        pass = { ...pass, position: row.id };
        if (problem === undefined) continue;
        pass = { ...pass, found: pass.found + 1 };
        const { id: fileId, version } = row;
        yield { pass, cost: FOUND_BYTES, found: { kind: "file", fileId, version, problem } };
      }
      const isEnd = rows.length < FILE_ROWS;
      pass = { ...pass, position: isEnd ? range[1] - 1 : pass.position, readBytes: pass.readBytes + cost };
      yield { pass, cost, found: undefined };
    }
  }

  /** The inodes of a held root behind a number. */
  #nextRange(position: number): [after: number, below: number] | undefined {
    const number = nextRoot(this.#deps.roots, rootNumberOf(position + 1) - 1);
    if (number === undefined) return undefined;
    return [Math.max(position, number * ROOT_STRIDE), (number + 1) * ROOT_STRIDE];
  }

  async #readList(file: FileRow, contentId: number): Promise<{ cost: number; problem: string | undefined }> {
    const list = new ListChecksum();
    let cost = 0;
    for (let after = -1, isEnd = false; !isEnd; ) {
      const rows = await this.#ask<ListedChunk>(
        `SELECT position, length, crc32 FROM file_chunk JOIN chunk ON chunk.id = chunk_id
         WHERE content_id = $1 AND position > $2 ORDER BY position LIMIT ${CHUNK_ROWS}`,
        [contentId, after],
      );
      for (const row of rows) list.add(row);
      after = rows.at(-1)?.position ?? after;
      isEnd = rows.length < CHUNK_ROWS;
      cost += rows.length * ROW_BYTES;
    }
    if (list.endBytes <= file.size && list.crcOf(file.size) === file.crc32)
      return { cost, problem: undefined };
    // It may have been changed or removed during the read.
    const same = "SELECT 1 AS one FROM inode WHERE id = $1 AND version = $2";
    const isSame = (await this.#ask(same, [file.id, file.version])).length > 0;
    return { cost, problem: isSame ? LIST_PROBLEM : undefined };
  }

  async #isKept(chunkId: number): Promise<boolean> {
    return (await this.#ask("SELECT 1 AS one FROM chunk WHERE id = $1 AND refs > 0", [chunkId])).length > 0;
  }

  #ask<Row = Record<string, unknown>>(text: string, values: readonly number[]): Promise<Row[]> {
    const ask = async (client: pg.Client): Promise<Row[]> =>
      (await client.query(text, [...values])).rows as Row[];
    return this.#deps.line.run(ask);
  }
}

/** What is wrong with a chunk's object, read past every cache; undefined for a whole one. */
export async function chunkProblem(
  { requests, prefix, marker }: Pick<ObjectStore, "marker" | "prefix" | "requests">,
  row: ChunkFacts & { readonly name: string },
): Promise<string | undefined> {
  const key = chunkKey(prefix, row.name);
  const wrong = checksumProblem(row);
  if (wrong !== undefined) return wrong;
  const facts = await requests.headOf(key);
  if (facts === undefined) {
    await marker.requireThere();
    return "has no object";
  }
  if (facts.length !== row.length) return `has an object of ${facts.length} bytes instead of ${row.length}`;
  let problem: string | undefined;
  for (let tries = 0; tries < FETCHES_MAX; tries++) {
    try {
      problem = blockProblem(row, await requests.getRange(key, 0, row.length));
    } catch (error) {
      if (!isStoreProblem(error, "missing")) throw error;
      await marker.requireThere();
      problem = "has no object";
    }
    if (problem === undefined) return undefined;
  }
  return problem;
}

function blockProblem({ blockCrcs, length }: ChunkFacts, bytes: Buffer): string | undefined {
  const view = new DataView(blockCrcs.buffer, blockCrcs.byteOffset, blockCrcs.byteLength);
  for (let index = 0; index * BLOCK_BYTES < length; index++) {
    const block = bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES);
    if (crc32(block) !== view.getUint32(index * 4, true))
      return `does not match its checksum in block ${index}`;
  }
  return undefined;
}
