// Roots that leave the shared engine for a node's own disks: rows out of PostgreSQL, chunks out of the store.

import { GroveError, isGroveError } from "#base/errors.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { isChunkName } from "#storage/chunks/chunk-names.ts";
import type {
  LocalMove,
  MoveBucket,
  MoveBucketKey,
  MovedRootHead,
  MoveReceipt,
  MoveRound,
  MoveTotals,
} from "#storage/contract/root-move.ts";
import { linesChecksum } from "#storage/metadata/move-rows.ts";
import { blockLength } from "#storage/object-store/chunk-run.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import type { DepartureCommits, LeavingChunk, LeavingRoot } from "#storage/shared/departure-commits.ts";
import type { DepartureReads } from "#storage/shared/departure-fetch.ts";
import type { MovingRows } from "#storage/shared/moving-rows.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import type { HeldRoots, OwnRoot } from "./held-roots.ts";

/** Dependencies of departures. */
export interface DeparturesDeps {
  readonly commits: DepartureCommits;
  readonly store: Pick<ObjectStore, "reading">;
  /** This process as a holder of roots. */
  readonly instance: string;
  readonly roots: Pick<HeldRoots, "adopt" | "drop" | "lookForOwn" | "of" | "withNumber">;
  readonly writer: Pick<SharedWriter, "release" | "setMove">;
  readonly rows: () => Promise<MovingRows>;
  /** Marks a chunk of the root with this number as damaged. */
  readonly damaged: (chunkId: number, number: number, problem: string) => Promise<void>;
}

/** A departure with what this process knows of it. */
interface Departure {
  move: LocalMove;
  /** Checksums of buckets that were read and have not been acknowledged, by key. */
  readonly sent: Map<string, string>;
  cursor: MoveBucketKey | undefined;
  /** The end of the round before: each takes its turn. */
  last: Promise<unknown>;
  /** True once the writer goes by the move's state, and what was under way before is committed. */
  isKept: Promise<boolean>;
}

/** See RootMoveStorage: its exports. */
export class Departures {
  readonly #deps: DeparturesDeps;
  readonly #departures = new Map<string, Departure>();
  /** Owners of roots that are here and shut. */
  #shut = new Set<string>();

  constructor(deps: DeparturesDeps) {
    this.#deps = deps;
  }

  list(): readonly LocalMove[] {
    return [...this.#departures.values()].map(({ move }) => move);
  }

  isShut(owner: string): boolean {
    return this.#shut.has(owner);
  }

  /** Goes on with the moves of roots that this process has taken, before it serves them. */
  async taken(roots: readonly Pick<OwnRoot, "number">[]): Promise<void> {
    const { commits, writer } = this.#deps;
    const moves = await commits.ofRoots(roots.map(({ number }) => number));
    const moving = new Set(moves.map(({ number }) => number));
    // What was kept of a move while another process held the root may be long over.
    const still = roots.filter(({ number }) => !moving.has(number));
    await Promise.all(still.map(({ number }) => writer.setMove(number, undefined)));
    for (const move of moves) await this.#keep(move);
  }

  /** Leaves the moves of roots to the processes that have taken these. */
  lost(roots: readonly OwnRoot[]): void {
    const numbers = new Set(roots.map(({ number }) => number));
    for (const { move } of this.#departures.values()) {
      if (!numbers.has(move.number) || move.state === "departed") continue;
      this.#forget(move.moveId);
      this.#deps.writer.release(move.number).catch(() => undefined);
    }
  }

  /** Reads how a move stands: another process may have gone on with it, or taken the root. */
  async takeOver(moveId: string): Promise<void> {
    const { commits } = this.#deps;
    for (;;) {
      const before = this.#departures.get(moveId)?.move;
      const there = await commits.find(moveId);
      const root = before && this.#deps.roots.withNumber(before.number);
      const isHeld = there === undefined && root !== undefined && (await commits.isHeld(root));
      const known = this.#departures.get(moveId);
      // Another call has begun the move or gone on with it, after this answer.
      if (known?.move !== before) continue;
      if (there === undefined) return this.#ended(moveId, root, isHeld);
      const isServed = there.state === "departed" && this.#deps.roots.withNumber(there.number) !== undefined;
      if (known?.move.state !== there.state || isServed) return this.#keep(there);
      // Another call may be at it still: this one ends no sooner, and does it where that one fails.
      if (await known.isKept) return;
      if (this.#departures.get(moveId)?.move === before) return this.#keep(there);
    }
  }

  /** Another process may have ended the move: what is still held here is no longer frozen. */
  async #ended(moveId: string, root: OwnRoot | undefined, isHeld: boolean): Promise<void> {
    const { roots, writer } = this.#deps;
    const known = this.#departures.get(moveId)?.move;
    if (root !== undefined && !isHeld && roots.withNumber(root.number)?.epoch === root.epoch) {
      roots.drop([root.number]);
      await writer.release(root.number);
    } else if (known !== undefined) await this.#setOver(known);
    if (this.#departures.get(moveId)?.move === known) this.#forget(moveId);
  }

  /** A root is free of a move that is over, unless another one has begun. */
  async #setOver({ moveId, number }: LocalMove): Promise<void> {
    const others = this.#departures.values().filter(({ move }) => move.moveId !== moveId);
    if (!others.some(({ move }) => move.number === number)) {
      await this.#deps.writer.setMove(number, undefined);
    }
  }

  /** See RootMoveStorage. */
  async takeNear({ moveId, owner }: { moveId: string; owner: string }): Promise<boolean> {
    const { commits, roots, instance } = this.#deps;
    if (roots.of(owner) !== undefined) {
      // It came by a take-over on its way: a departure that stays would remove it once the move has switched.
      if ((await commits.find(moveId)) !== undefined) await this.endExport(moveId);
      return true;
    }
    const taken = await commits.handOver(moveId, instance).catch((error: unknown) => {
      // The answer alone may be lost, and then no other process would ever take the root.
      roots.lookForOwn();
      throw error;
    });
    if (taken === undefined) return false;
    await roots.adopt(taken);
    return true;
  }

  async beginExport({ moveId, owner }: { moveId: string; owner: string }): Promise<LocalMove> {
    const root = this.#deps.roots.of(owner);
    if (root === undefined) throw new GroveError("NO_SUCH_PATH", "this node does not serve this root");
    if (!(await this.#deps.commits.begin({ moveId, ...root }))) {
      throw new GroveError("BAD_ARGUMENT", "this root is under another move; end that first");
    }
    await this.takeOver(moveId);
    return this.#require(moveId).move;
  }

  nextRound(moveId: string, receipts: readonly MoveReceipt[], maxBytes: number): Promise<MoveRound> {
    const departure = this.#require(moveId);
    const round = departure.last.then(() => this.#round(departure, receipts, maxBytes));
    departure.last = round.catch(() => undefined);
    return round;
  }

  async readChunk(moveId: string, name: string): Promise<Buffer | undefined> {
    const { number, owner } = this.#require(moveId).move;
    if (!isChunkName(name)) throw new GroveError("BAD_ARGUMENT", "this is no name of a chunk");
    const chunk = await this.#deps.commits.chunk(number, name);
    if (chunk === undefined) return undefined;
    try {
      const bytes = await this.#bytesOf(chunk, owner);
      if (chunk.isDamaged || crc32(bytes) === chunk.crc32) return bytes;
    } catch (error) {
      if (!isGroveError(error) || error.code !== "CORRUPT") throw error;
    }
    await this.#deps.damaged(chunk.id, number, "was found wrong when its root moved");
    return undefined;
  }

  async freeze(moveId: string): Promise<MovedRootHead> {
    const { commits } = this.#deps;
    const { move } = this.#require(moveId);
    const root = this.#heldRoot(moveId);
    if (root !== undefined) {
      this.#shut.add(move.owner);
      await commits.set(root, "frozen");
      // Changes that were under way are committed when this has resolved.
      await this.takeOver(moveId);
    }
    const head = await commits.head(moveId);
    if (head === undefined) throw noMove();
    return head;
  }

  exportTotals(moveId: string): Promise<MoveTotals | undefined> {
    return this.#deps.commits.totals(moveId);
  }

  async thaw(moveId: string): Promise<void> {
    const root = this.#heldRoot(moveId);
    // Who has taken the root over takes the attempt back itself.
    if (root === undefined) return;
    await this.#deps.commits.set(root, "copying");
    await this.#keep({ ...this.#require(moveId).move, state: "copying" });
  }

  async depart(moveId: string, address: string): Promise<void> {
    this.#require(moveId);
    await this.#deps.commits.depart(moveId, address);
    await this.takeOver(moveId);
  }

  async endExport(moveId: string): Promise<void> {
    const known = this.#departures.get(moveId);
    while (await this.#deps.commits.dropSlice(moveId));
    this.#forget(moveId);
    if (known !== undefined) await this.#setOver(known.move);
  }

  async #round(departure: Departure, receipts: readonly MoveReceipt[], maxBytes: number): Promise<MoveRound> {
    const { commits } = this.#deps;
    const { sent, move } = departure;
    const root = this.#heldRoot(move.moveId);
    if (root === undefined) throw new GroveError("WRONG_NODE", "another node serves this root now");
    // What has arrived otherwise than it was read is read again.
    const known = receipts.filter((one) => one.checksum === "" || sent.get(sentKey(one)) === one.checksum);
    sent.clear();
    if (known.length > 0) await this.#receive(root, known);
    await commits.mark(root);
    const rows = await this.#deps.rows();
    return commits.read(root.number, (reads) => this.#read(departure, { reads, rows, maxBytes }));
  }

  async #read(
    departure: Departure,
    at: { readonly reads: DepartureReads; readonly rows: MovingRows; readonly maxBytes: number },
  ): Promise<MoveRound> {
    const { move, sent } = departure;
    const buckets: MoveBucket[] = [];
    let bytes = 0;
    const { changed, unmarked } = await at.reads.left();
    for await (const { keys, rows } of at.reads.rows(await at.reads.changed(departure.cursor))) {
      const lines = at.rows.lines(move, keys, rows);
      for (const [index, key] of keys.entries()) {
        const bucket = { ...key, lines: lines[index] ?? [] };
        buckets.push(bucket);
        sent.set(sentKey(bucket), linesChecksum(bucket.lines));
        bytes += bucket.lines.reduce((sum, line) => sum + line.length, 100);
        departure.cursor = key;
      }
      if (bytes >= at.maxBytes) break;
    }
    return { buckets, left: Math.max(0, changed - buckets.length) + Math.ceil(unmarked / 256) };
  }

  async #receive(root: LeavingRoot, receipts: readonly MoveReceipt[]): Promise<void> {
    const { commits, rows } = this.#deps;
    const there = await commits.buckets(root.number, receipts);
    const { effects } = (await rows()).receive(root, receipts, there);
    const changed = effects.flatMap(({ table, rows: all }) => (table === "move_bucket" ? all : []));
    if (changed.length > 0) await commits.receive(root, changed);
  }

  /** Blocks that are damaged already come as zeros, so that what is left of their chunk is kept. */
  async #bytesOf(chunk: LeavingChunk, owner: string): Promise<Buffer> {
    const reading = this.#deps.store.reading(owner);
    try {
      const blocks: Buffer[] = [];
      for (let index = 0; index * BLOCK_BYTES < chunk.length; index++) {
        blocks.push(
          await reading.readBlock(chunk, index).catch((error: unknown) => {
            if (chunk.isDamaged && isGroveError(error) && error.code === "CORRUPT")
              return Buffer.alloc(blockLength(chunk, index));
            throw error;
          }),
        );
      }
      return Buffer.concat(blocks);
    } finally {
      reading.close();
    }
  }

  async #keep(move: LocalMove): Promise<void> {
    const fresh = {
      sent: new Map(),
      cursor: undefined,
      last: Promise.resolve(),
      isKept: Promise.resolve(true),
    };
    const departure: Departure = this.#departures.get(move.moveId) ?? { move, ...fresh };
    departure.move = move;
    this.#departures.set(move.moveId, departure);
    const kept = this.#apply(move);
    departure.isKept = kept.then(
      () => true,
      () => false,
    );
    await kept;
  }

  async #apply({ number, state, owner }: LocalMove): Promise<void> {
    const { roots, writer } = this.#deps;
    if (state === "frozen") this.#shut.add(owner);
    if (state === "copying" || state === "frozen") await writer.setMove(number, state);
    else if (roots.withNumber(number) !== undefined) {
      roots.drop([number]);
      await writer.release(number);
    }
    if (state !== "frozen") this.#shut.delete(owner);
  }

  #forget(moveId: string): void {
    const known = this.#departures.get(moveId);
    if (known === undefined) return;
    this.#departures.delete(moveId);
    this.#shut.delete(known.move.owner);
  }

  /** The root of a move while this process holds it. */
  #heldRoot(moveId: string): LeavingRoot | undefined {
    const root = this.#deps.roots.withNumber(this.#require(moveId).move.number);
    return root && { moveId, number: root.number, epoch: root.epoch };
  }

  #require(moveId: string): Departure {
    const departure = this.#departures.get(moveId);
    if (departure === undefined) throw noMove();
    return departure;
  }
}

function sentKey({ kind, a, b, changes }: MoveBucketKey & { readonly changes: number }): string {
  return `${kind}.${a}.${b}.${changes}`;
}

function noMove(): GroveError {
  return new GroveError("NO_SUCH_PATH", "this node knows no such move");
}
