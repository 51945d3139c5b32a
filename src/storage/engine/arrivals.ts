// Roots that come to the shared engine from nodes with disks of their own: rows to PostgreSQL, chunks to the
// object store.
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { crc32 } from "#os/crc32.ts";
import type {
  LocalMove,
  MoveBucket,
  MovedChunk,
  MovedRootHead,
  MoveReceipt,
  MoveTotals,
} from "#storage/contract/root-move.ts";
import { chunksOf } from "#storage/metadata/move-rows.ts";
import { totalsOf } from "#storage/metadata/move-sums.ts";
import { ARRIVING } from "#storage/metadata/moved-roots.ts";
import type { ChunkNamesOfRoot } from "#storage/object-store/chunk-names-of-root.ts";
import type { ObjectChunkWriter } from "#storage/object-store/object-chunk-writer.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import type { ArrivalCommits, ArrivalHolder, HeldArrival } from "#storage/shared/arrival-commits.ts";
import { type ArrivalThere, fetchBuckets, fetchGrants, fetchKeys } from "#storage/shared/arrival-fetch.ts";
import { FENCED } from "#storage/shared/fenced.ts";
import type { MovingRows } from "#storage/shared/moving-rows.ts";
import type { TableEffects } from "#storage/shared/table-rows.ts";
import { requireBucket } from "#storage/writer/move-arrivals.ts";
import type { OwnRoot } from "./held-roots.ts";

/** Dependencies of arrivals. */
export interface ArrivalsDeps {
  readonly commits: ArrivalCommits;
  readonly store: Pick<ObjectStore, "namesOf" | "upload">;
  /** This process as a holder of roots. */
  readonly instance: string;
  readonly rows: () => Promise<MovingRows>;
  /** Serves a root that has come. */
  readonly serve: (root: OwnRoot) => Promise<void>;
  readonly sharesChanged: (owners: readonly string[]) => void;
}

/** An arrival with what this process knows of it. */
interface Arrival {
  held: HeldArrival;
  totals: MoveTotals;
  readonly names: ChunkNamesOfRoot;
  /** Chunks in the store without a row yet, by the source's names. */
  readonly landed: Map<string, ObjectChunkWriter>;
}

/** See RootMoveStorage: its imports. */
export class Arrivals {
  readonly #deps: ArrivalsDeps;
  readonly #arrivals = new Map<string, Arrival>();
  #taking: Promise<void> = Promise.resolve();

  constructor(deps: ArrivalsDeps) {
    this.#deps = deps;
  }

  list(): readonly LocalMove[] {
    return [...this.#arrivals.values()].map(({ held }) => held);
  }

  /**
   * Goes on with an arrival, whichever process had it. Only who is told to does: another node may have the
   * move by now, also after this one's own end.
   */
  takeOver(moveId: string): Promise<void> {
    // One after the other: each take ends the epoch before.
    const taking = this.#taking.then(async () => {
      if (this.#arrivals.has(moveId)) return;
      for (const held of await this.#deps.commits.take(moveId)) await this.#add(held);
    });
    this.#taking = taking.catch(() => undefined);
    return taking;
  }

  isNear(owner: string): Promise<boolean> {
    return this.#deps.commits.hasRoot(owner);
  }

  async beginImport(move: {
    readonly moveId: string;
    readonly owner: string;
    readonly numbers: readonly number[];
  }): Promise<LocalMove> {
    const { moveId, owner, numbers } = move;
    const { commits } = this.#deps;
    await this.takeOver(moveId);
    const mine = this.#arrivals.get(moveId);
    if (mine !== undefined && (await commits.find(moveId))?.epoch !== mine.held.epoch) {
      // Another process has had it since: under this one's epoch nothing more would arrive.
      this.#arrivals.delete(moveId);
      await this.takeOver(moveId);
    }
    const known = this.#arrivals.get(moveId);
    if (known !== undefined) return known.held;
    if (await commits.hasRoot(owner)) {
      throw new GroveError("PATH_EXISTS", "this user's root is in the shared engine already");
    }
    if (!(await commits.begin(moveId, owner, numbers))) {
      throw new GroveError("BAD_ARGUMENT", "no number is free in the shared engine for this root");
    }
    await this.takeOver(moveId);
    return this.#require(moveId).held;
  }

  async missingChunks(moveId: string, buckets: readonly MoveBucket[]): Promise<MovedChunk[]> {
    const { held, landed } = this.#require(moveId);
    const chunks = [...chunksOf(buckets).values()].filter(({ name }) => !landed.has(name));
    if (chunks.length === 0) return [];
    const known = await this.#deps.commits.known(
      held.number,
      chunks.map(({ name }) => name),
    );
    return chunks.filter(({ name }) => !known.has(name));
  }

  async putChunk(moveId: string, chunk: MovedChunk, bytes: Buffer): Promise<void> {
    const { held, names, landed } = this.#require(moveId);
    const { name, length, isDamaged } = chunk;
    if (!isDamaged && (bytes.length !== length || crc32(bytes) !== chunk.crc32)) {
      throw new GroveError("CHECKSUM_MISMATCH", "a chunk of a moving root did not arrive as it was sent");
    }
    if (landed.has(name)) return;
    // What is left of a damaged chunk keeps the length that its row says.
    const body = bytes.length === length ? bytes : Buffer.concat([bytes, Buffer.alloc(length)], length);
    const upload = this.#deps.store.upload({ names, user: held.owner, sizeBytes: length });
    const writer = upload.chunk(0);
    const appended = writer.append([body], length);
    try {
      // Both fail where the store does not answer.
      await Promise.all([writer.finish({ crc32: crc32(body), blockCrcs: [] }), appended]);
    } catch (error) {
      await writer.discard();
      throw error;
    }
    landed.set(name, writer);
  }

  async putBuckets(moveId: string, buckets: readonly MoveBucket[]): Promise<readonly MoveReceipt[]> {
    const arrival = this.#require(moveId);
    const { held, landed } = arrival;
    for (const bucket of buckets) requireBucket(bucket);
    const rows = await this.#deps.rows();
    const there = await this.#deps.commits.fetch((client) => fetchBuckets(client, held.number, buckets));
    const run = rows.put(held, buckets, there.rows);
    const { effects, left } = withStoreNames(held.number, run.effects, there, landed);
    await this.#commit(arrival, there, effects);
    arrival.totals = run.totals;
    settle(landed, left);
    const names = chunksOf(buckets).keys().toArray();
    settle(landed, await this.#deps.commits.known(held.number, names));
    // What counts is what PostgreSQL has by now, not what was sent to it.
    const now = await this.#deps.commits.fetch((client) => fetchKeys(client, held.number, buckets));
    const stored = rows.checksums(held, buckets, now.rows);
    const checked = new Map(buckets.map((bucket, at) => [keyOf(bucket), stored[at]]));
    for (const receipt of run.reply) {
      if (receipt.checksum !== "" && receipt.checksum !== checked.get(keyOf(receipt))) {
        throw new GroveError(
          "CHECKSUM_MISMATCH",
          "rows of a moving root are not in the database as they were sent",
        );
      }
    }
    return run.reply;
  }

  importTotals(moveId: string): MoveTotals {
    return this.#require(moveId).totals;
  }

  async keepHead(moveId: string, head: string): Promise<void> {
    const arrival = this.#require(moveId);
    if (!(await this.#deps.commits.keepHead(arrival.held, head))) throw this.#lost(arrival);
    arrival.held = { ...arrival.held, head };
  }

  async finishImport(moveId: string, head: MovedRootHead, firstEpoch: number): Promise<void> {
    const { commits, instance, serve, sharesChanged } = this.#deps;
    const arrival = this.#require(moveId);
    // The answer of an earlier try may have been lost.
    arrival.held = (await commits.find(moveId)) ?? arrival.held;
    const { held } = arrival;
    if (held.state !== "arrived") {
      const there = await commits.fetch((client) => fetchGrants(client, held.number));
      const { effects } = (await this.#deps.rows()).finish(held, head, there.rows);
      await this.#commit(arrival, there, effects, { instance, epoch: firstEpoch });
      arrival.held = { ...held, state: "arrived" };
    }
    const { owner, rootId } = head;
    await serve({ owner, rootId, number: held.number, epoch: firstEpoch });
    sharesChanged([owner]);
  }

  async endImport(moveId: string): Promise<void> {
    const arrival = this.#arrivals.get(moveId);
    if (arrival === undefined) return;
    let dropped = await this.#deps.commits.dropSlice(arrival.held);
    while (dropped === "more") dropped = await this.#deps.commits.dropSlice(arrival.held);
    this.#arrivals.delete(moveId);
    // Of another process's arrival rows may name them: they are left to the sweeps.
    if (dropped === "fenced") return;
    for (const writer of arrival.landed.values()) await writer.discard();
  }

  async #add(held: HeldArrival): Promise<void> {
    const totals = totalsOf(await this.#deps.commits.sum(held.number));
    const names = this.#deps.store.namesOf(ARRIVING + held.moveId, held.epoch);
    this.#arrivals.set(held.moveId, { held, totals, names, landed: new Map() });
  }

  async #commit(
    arrival: Arrival,
    there: ArrivalThere,
    effects: readonly TableEffects[],
    holder?: ArrivalHolder,
  ): Promise<void> {
    try {
      await this.#deps.commits.commit(arrival.held, there, effects, holder);
    } catch (error) {
      if ((error as { code?: unknown }).code === FENCED) throw this.#lost(arrival);
      if (error instanceof GroveError) throw error;
      const text = `the shared database did not take rows of a moving root: ${errorText(error)}`;
      throw new GroveError("STORE_UNAVAILABLE", text, { cause: error });
    }
  }

  /** Another process goes on with it: what is in the store without a row is left to the sweeps. */
  #lost({ held }: Arrival): GroveError {
    this.#arrivals.delete(held.moveId);
    return new GroveError("FENCED", "another node of the shared engine goes on with this move");
  }

  #require(moveId: string): Arrival {
    const arrival = this.#arrivals.get(moveId);
    if (arrival === undefined) throw new GroveError("NO_SUCH_PATH", "this node knows no such move");
    return arrival;
  }
}

/**
 * Rows as the engine keeps them: each chunk with its name in the store, and the source's name beside it. With the
 * names that have left: their rows wait for their removal.
 */
function withStoreNames(
  number: number,
  effects: readonly TableEffects[],
  { names, purging }: ArrivalThere,
  landed: ReadonlyMap<string, ObjectChunkWriter>,
): { readonly effects: TableEffects[]; readonly left: readonly string[] } {
  const arrived: object[] = [];
  const left: string[] = [];
  const chunks = effects.map((effect) => {
    if (effect.table !== "chunk") return effect;
    const rows = (effect.rows as readonly { id: number; name: string; refs: number }[]).map((row) => {
      const writer = landed.get(row.name);
      const own = names.get(row.name) ?? writer?.record({ crc32: 0, blockCrcs: [] }).name;
      if (own === undefined) throw new Error("a chunk of a moving root has rows before its bytes");
      // A chunk that is dropped never comes back: the next row that names it brings its bytes again.
      if (row.refs === 0) left.push(row.name);
      else if (!names.has(row.name)) arrived.push({ number, name: row.name, chunk_id: row.id });
      return { ...row, name: own };
    });
    return { ...effect, rows };
  });
  const gone = purging.map((id) => ({ id }));
  const kept = chunks.map((effect) =>
    effect.table === "purging" ? { ...effect, gone: [...effect.gone, ...gone] } : effect,
  );
  if (gone.length > 0 && !kept.some(({ table }) => table === "purging"))
    kept.push({ table: "purging", gone, rows: [] });
  const leaving = left.map((name) => ({ number, name }));
  if (arrived.length + left.length > 0) kept.push({ table: "arrived_chunk", gone: leaving, rows: arrived });
  return { effects: kept, left };
}

/** Says of chunks that they have had their rows. */
function settle(landed: Map<string, ObjectChunkWriter>, names: Iterable<string>): void {
  for (const name of names) {
    landed.get(name)?.settle();
    landed.delete(name);
  }
}

function keyOf({ kind, a, b }: Pick<MoveBucket, "a" | "b" | "kind">): string {
  return `${kind}.${a}.${b}`;
}
