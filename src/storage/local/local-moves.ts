// The storage's part in the move of a root: rounds of changed rows, chunk files by name, and the end of both.
import { read, write } from "node:fs";
import { promisify } from "node:util";
import { GroveError } from "#base/errors.ts";
import { crc32 } from "#os/crc32.ts";
import { isChunkName } from "#storage/chunks/chunk-names.ts";
import type { ChunkStore } from "#storage/chunks/chunk-store.ts";
import type { OpenChunkFiles } from "#storage/chunks/open-chunk-files.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type {
  DepartedRoot,
  LocalMove,
  LocalMoveState,
  MoveBucket,
  MoveBucketKey,
  MovedChunk,
  MovedRootHead,
  MoveReceipt,
  MoveRound,
  MoveTotals,
  RootMoveStorage,
} from "#storage/contract/root-move.ts";
import { chunksOf, linesChecksum, MoveRows } from "#storage/metadata/move-rows.ts";
import { MOVE_SUM, totalsOf } from "#storage/metadata/move-sums.ts";
import { RootPlaceReader } from "#storage/metadata/root-places.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import type { DamageReports } from "#storage/scrub/damage-reports.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

const readBytes = promisify(read);
const writeBytes = promisify(write);

/** Buckets that one round looks at. */
const BUCKETS_AT_ONCE = 512;
/** Buckets that are counted as left. */
const LEFT_COUNTED = 100_000;

/** Dependencies of the moves. */
export interface LocalMovesDeps {
  readonly queue: WriteQueue;
  readonly tables: SnapshotTables;
  readonly files: OpenChunkFiles;
  readonly store: ChunkStore;
  readonly damage: DamageReports;
  readonly sharesChanged: (owners: readonly string[]) => void;
}

type KeyRow = [kind: 0 | 1 | 2, a: number, b: number, changes: number];
type MoveListRow = [string, string, LocalMoveState, number, string, string];

/** See RootMoveStorage. */
export class LocalMoves implements RootMoveStorage {
  readonly isOwnFolder = true;
  readonly #deps: LocalMovesDeps;
  readonly #rows: MoveRows;
  readonly #places: RootPlaceReader;
  readonly #list: ReturnType<SnapshotTables["prepare"]>;
  readonly #unmarked: ReturnType<SnapshotTables["prepare"]>;
  readonly #changed: ReturnType<SnapshotTables["prepare"]>;
  readonly #left: ReturnType<SnapshotTables["prepare"]>;
  readonly #sum: ReturnType<SnapshotTables["prepare"]>;
  readonly #chunk: ReturnType<SnapshotTables["prepare"]>;
  readonly #ownChunk: ReturnType<SnapshotTables["prepare"]>;
  /** Checksums of buckets that were read and have not been acknowledged, by move and key. */
  readonly #sent = new Map<string, Map<string, string>>();
  readonly #cursors = new Map<string, MoveBucketKey>();
  /** Chunk files without a row yet. */
  readonly #landed = new Set<string>();
  /** Imports that are about to begin, which may count on such files. */
  #beginning = 0;
  /** The removal of such files, for which the next import waits. */
  #dropping: Promise<void> = Promise.resolve();

  constructor(deps: LocalMovesDeps) {
    this.#deps = deps;
    const { tables } = deps;
    this.#rows = new MoveRows((sql) => tables.prepare(sql));
    this.#places = new RootPlaceReader(tables);
    this.#list = tables.prepare(
      "SELECT move_id, owner, state, number, address, head FROM root_move ORDER BY move_id",
    );
    this.#unmarked = tables.prepare("SELECT ids - marked FROM root_move WHERE move_id = ?");
    this.#changed = tables.prepare(
      `SELECT kind, a, b, changes FROM move_bucket WHERE number = ? AND changes > sent AND (kind, a, b) > (?, ?, ?)
       ORDER BY kind, a, b LIMIT ${BUCKETS_AT_ONCE}`,
    );
    this.#left = tables.prepare(
      `SELECT count(*) FROM (SELECT 1 FROM move_bucket WHERE number = ? AND changes > sent LIMIT ${LEFT_COUNTED})`,
    );
    this.#sum = tables.prepare(MOVE_SUM);
    this.#chunk = tables.prepare("SELECT 1 FROM chunk WHERE name = ?");
    // The name of another root's chunk opens nothing.
    this.#ownChunk = tables.prepare(
      `SELECT id, length, crc32, EXISTS (SELECT 1 FROM damaged_chunk WHERE chunk_id = id) FROM chunk WHERE name = ?
         AND EXISTS (SELECT 1 FROM file_chunk WHERE chunk_id = chunk.id AND content_id BETWEEN ? AND ?)`,
    );
  }

  list(): readonly LocalMove[] {
    return this.#deps.tables.read(() =>
      (this.#list.all() as unknown as MoveListRow[]).map(([moveId, owner, state, number, address, head]) => ({
        moveId,
        owner,
        state,
        number,
        address,
        head,
      })),
    );
  }

  async takeOver(): Promise<void> {
    // A node's own folder is nobody else's.
  }

  isShut(): boolean {
    return false;
  }

  async isNear(): Promise<boolean> {
    return false;
  }

  async takeNear(): Promise<boolean> {
    return false;
  }

  beginExport(move: { readonly moveId: string; readonly owner: string }): Promise<LocalMove> {
    return this.#deps.queue.submit({ op: "beginExport", ...move });
  }

  async nextRound(moveId: string, receipts: readonly MoveReceipt[], maxBytes: number): Promise<MoveRound> {
    const { queue, tables } = this.#deps;
    const { number } = this.#require(moveId);
    const sent = this.#sent.get(moveId) ?? new Map<string, string>();
    this.#sent.set(moveId, sent);
    // What has arrived otherwise than it was read is read again.
    const known = receipts.filter(
      (receipt) => receipt.checksum === "" || sent.get(sentKey(receipt)) === receipt.checksum,
    );
    sent.clear();
    if (known.length > 0) await queue.submit({ op: "receiveBuckets", moveId, receipts: known });
    await queue.submit({ op: "markExport", moveId });
    return tables.read(() => {
      const buckets: MoveBucket[] = [];
      let bytes = 0;
      for (const [kind, a, b, changes] of this.#nextKeys(moveId, number)) {
        const lines = this.#rows.lines(number, { kind, a, b });
        const bucket = { kind, a, b, changes, lines };
        buckets.push(bucket);
        sent.set(sentKey(bucket), linesChecksum(lines));
        bytes += lines.reduce((sum, line) => sum + line.length, 100);
        this.#cursors.set(moveId, bucket);
        if (bytes >= maxBytes) break;
      }
      const [changed] = this.#left.get(number) as unknown as [number];
      const [unmarked] = this.#unmarked.get(moveId) as unknown as [number];
      return { buckets, left: Math.max(0, changed - buckets.length) + Math.ceil(unmarked / 256) };
    });
  }

  /** From behind the last one on, so that what changes all the time keeps nothing else waiting. */
  #nextKeys(moveId: string, number: number): KeyRow[] {
    const after = this.#cursors.get(moveId) ?? { kind: -1, a: 0, b: 0 };
    const behind = this.#changed.all(number, after.kind, after.a, after.b) as unknown as KeyRow[];
    return behind.length > 0 ? behind : (this.#changed.all(number, -1, 0, 0) as unknown as KeyRow[]);
  }

  async readChunk(moveId: string, name: string): Promise<Buffer | undefined> {
    const { number } = this.#require(moveId);
    if (!isChunkName(name)) throw new GroveError("BAD_ARGUMENT", "this is no name of a chunk");
    const base = number * ROOT_STRIDE;
    const row = this.#deps.tables.read(() =>
      this.#ownChunk.get(name, base, base + ROOT_STRIDE - 1),
    ) as unknown as [number, number, number, 0 | 1] | undefined;
    if (row === undefined) return undefined;
    const [chunkId, length, crc, isDamaged] = row;
    const bytes = await this.#bytesOf(name, length);
    if (isDamaged === 1) return bytes ?? Buffer.alloc(0);
    if (bytes !== undefined && bytes.length === length && crc32(bytes) === crc) return bytes;
    // A chunk that was dropped meanwhile has no row any more, and is no damage.
    await this.#deps.damage.report({ chunkId }, "was found wrong when its root moved");
    return undefined;
  }

  async #bytesOf(name: string, length: number): Promise<Buffer | undefined> {
    try {
      return await this.#deps.files.use(name, async (descriptor) => {
        const bytes = Buffer.allocUnsafeSlow(length);
        let at = 0;
        while (at < length) {
          const { bytesRead } = await readBytes(descriptor, bytes, at, length - at, at);
          if (bytesRead === 0) break;
          at += bytesRead;
        }
        return bytes.subarray(0, at);
      });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  freeze(moveId: string): Promise<MovedRootHead> {
    return this.#deps.queue.submit({ op: "freezeRoot", moveId });
  }

  async exportTotals(moveId: string): Promise<MoveTotals | undefined> {
    const { number } = this.#require(moveId);
    return this.#deps.tables.read(() => {
      const [changed] = this.#left.get(number) as unknown as [number];
      const [unmarked] = this.#unmarked.get(moveId) as unknown as [number];
      return changed > 0 || unmarked > 0 ? undefined : totalsOf(this.#sum.get(number));
    });
  }

  async thaw(moveId: string): Promise<void> {
    await this.#deps.queue.submit({ op: "thawRoot", moveId });
  }

  async depart(moveId: string, address: string, target = ""): Promise<void> {
    const { owner } = this.#require(moveId);
    await this.#deps.queue.submit({ op: "departRoot", moveId, address, target });
    this.#deps.sharesChanged([owner]);
  }

  departedRoots(owner?: string): readonly DepartedRoot[] {
    return this.#places.departed(owner);
  }

  arrivals(): ReadonlyMap<string, string> {
    return this.#places.arrivals();
  }

  async takeBack(moveId: string): Promise<void> {
    const move = this.list().find((one) => one.moveId === moveId);
    if (move === undefined) return;
    await this.#deps.queue.submit({ op: "takeRootBack", moveId });
    await this.endExport(moveId);
    this.#deps.sharesChanged([move.owner]);
  }

  async endExport(moveId: string): Promise<void> {
    while (await this.#deps.queue.submit({ op: "endExport", moveId }));
    this.#sent.delete(moveId);
    this.#cursors.delete(moveId);
  }

  async beginImport(move: {
    readonly moveId: string;
    readonly owner: string;
    readonly numbers: readonly number[];
  }): Promise<LocalMove> {
    this.#beginning++;
    try {
      await this.#dropping;
      return await this.#deps.queue.submit({ op: "beginImport", ...move });
    } finally {
      this.#beginning--;
    }
  }

  async missingChunks(_moveId: string, buckets: readonly MoveBucket[]): Promise<MovedChunk[]> {
    const chunks = [...chunksOf(buckets).values()];
    return this.#deps.tables.read(() =>
      chunks.filter(({ name }) => !this.#landed.has(name) && this.#chunk.get(name) === undefined),
    );
  }

  async putChunk(
    _moveId: string,
    { name, length, crc32: crc, isDamaged }: MovedChunk,
    bytes: Buffer,
  ): Promise<void> {
    const { store } = this.#deps;
    if (!isDamaged && (bytes.length !== length || crc32(bytes) !== crc)) {
      throw new GroveError("CHECKSUM_MISMATCH", "a chunk of a moving root did not arrive as it was sent");
    }
    if (!isChunkName(name)) throw new GroveError("BAD_ARGUMENT", "this is no name of a chunk");
    if (this.#landed.has(name)) return;
    await store.adoptName(name);
    try {
      // A former try may have left one.
      await store.unlink(name);
      const descriptor = await store.create(name);
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await writeBytes(descriptor, bytes, at, bytes.length - at, at).catch(
          async (error: unknown) => {
            await store.discard(descriptor);
            throw error;
          },
        );
        at += bytesWritten;
      }
      await store.flushAndClose("", descriptor);
    } catch (error) {
      await store.unlink(name);
      store.settle([name]);
      throw error;
    }
    this.#landed.add(name);
  }

  async putBuckets(moveId: string, buckets: readonly MoveBucket[]): Promise<readonly MoveReceipt[]> {
    const { queue, store, tables } = this.#deps;
    // Others have landed for buckets that are still to come, perhaps of another move.
    const names = [...chunksOf(buckets).keys()].filter((name) => this.#landed.has(name));
    await store.flushDirectoriesOf(names);
    // After a failure the files stay landed for the next try.
    const receipts = await queue.submit({ op: "putMoveBuckets", moveId, buckets });
    for (const name of names) {
      if (!this.#landed.delete(name)) continue;
      if (tables.read(() => this.#chunk.get(name)) === undefined) await store.unlink(name);
      store.settle([name]);
    }
    return receipts;
  }

  importTotals(moveId: string): MoveTotals {
    const { number } = this.#require(moveId);
    return this.#deps.tables.read(() => totalsOf(this.#sum.get(number)));
  }

  async keepHead(moveId: string, head: string): Promise<void> {
    await this.#deps.queue.submit({ op: "keepMoveHead", moveId, head });
  }

  async finishImport(moveId: string, head: MovedRootHead): Promise<void> {
    await this.#deps.queue.submit({ op: "finishImport", moveId, head });
    this.#deps.sharesChanged([head.owner]);
  }

  async endImport(moveId: string): Promise<void> {
    while (await this.#deps.queue.submit({ op: "dropImport", moveId }));
    await this.#dropping;
    // Another arrival may count on a file that it shares with this one.
    if (this.#beginning > 0 || this.list().some(({ state }) => state === "arriving")) return;
    const names = [...this.#landed];
    this.#landed.clear();
    this.#dropping = this.#drop(names);
    await this.#dropping;
  }

  /** Never rejects: what stays goes at the next start. */
  async #drop(names: readonly string[]): Promise<void> {
    const { store } = this.#deps;
    for (const name of names) {
      await store.unlink(name).catch(() => undefined);
      store.settle([name]);
    }
  }

  #require(moveId: string): LocalMove {
    const move = this.list().find((one) => one.moveId === moveId);
    if (move === undefined) throw new GroveError("NO_SUCH_PATH", "this node knows no such move");
    return move;
  }
}

function sentKey({ kind, a, b, changes }: MoveBucketKey & { readonly changes: number }): string {
  return `${kind}.${a}.${b}.${changes}`;
}
