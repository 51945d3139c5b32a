// Roots that come to the shared engine and leave it, as the moves of a node ask for them.
import { GroveError } from "#base/errors.ts";
import type {
  DepartedRoot,
  LocalMove,
  MoveBucket,
  MovedChunk,
  MovedRootHead,
  MoveReceipt,
  MoveRound,
  MoveTotals,
  RootMoveStorage,
} from "#storage/contract/root-move.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Departures } from "./departures.ts";

/** See RootMoveStorage. */
export class SharedMoves implements RootMoveStorage {
  readonly isOwnFolder = false;
  readonly #arrivals: Arrivals;
  readonly #departures: Departures;

  constructor(arrivals: Arrivals, departures: Departures) {
    this.#arrivals = arrivals;
    this.#departures = departures;
  }

  list(): readonly LocalMove[] {
    return [...this.#arrivals.list(), ...this.#departures.list()];
  }

  async takeOver(moveId: string): Promise<void> {
    await this.#arrivals.takeOver(moveId);
    await this.#departures.takeOver(moveId);
  }

  isShut(owner: string): boolean {
    return this.#departures.isShut(owner);
  }

  beginExport(move: { readonly moveId: string; readonly owner: string }): Promise<LocalMove> {
    return this.#departures.beginExport(move);
  }

  nextRound(moveId: string, receipts: readonly MoveReceipt[], maxBytes: number): Promise<MoveRound> {
    return this.#departures.nextRound(moveId, receipts, maxBytes);
  }

  readChunk(moveId: string, name: string): Promise<Buffer | undefined> {
    return this.#departures.readChunk(moveId, name);
  }

  freeze(moveId: string): Promise<MovedRootHead> {
    return this.#departures.freeze(moveId);
  }

  exportTotals(moveId: string): Promise<MoveTotals | undefined> {
    return this.#departures.exportTotals(moveId);
  }

  thaw(moveId: string): Promise<void> {
    return this.#departures.thaw(moveId);
  }

  depart(moveId: string, address: string): Promise<void> {
    return this.#departures.depart(moveId, address);
  }

  arrivals(): undefined {
    return undefined;
  }

  departedRoots(): readonly DepartedRoot[] {
    return [];
  }

  async takeBack(): Promise<void> {
    throw new GroveError("BAD_ARGUMENT", "the shared engine gives no copy back");
  }

  endExport(moveId: string): Promise<void> {
    return this.#departures.endExport(moveId);
  }

  isNear(owner: string): Promise<boolean> {
    return this.#arrivals.isNear(owner);
  }

  takeNear(move: { readonly moveId: string; readonly owner: string }): Promise<boolean> {
    return this.#departures.takeNear(move);
  }

  beginImport(move: Parameters<RootMoveStorage["beginImport"]>[0]): Promise<LocalMove> {
    return this.#arrivals.beginImport(move);
  }

  missingChunks(moveId: string, buckets: readonly MoveBucket[]): Promise<MovedChunk[]> {
    return this.#arrivals.missingChunks(moveId, buckets);
  }

  putChunk(moveId: string, chunk: MovedChunk, bytes: Buffer): Promise<void> {
    return this.#arrivals.putChunk(moveId, chunk, bytes);
  }

  putBuckets(moveId: string, buckets: readonly MoveBucket[]): Promise<readonly MoveReceipt[]> {
    return this.#arrivals.putBuckets(moveId, buckets);
  }

  importTotals(moveId: string): MoveTotals {
    return this.#arrivals.importTotals(moveId);
  }

  keepHead(moveId: string, head: string): Promise<void> {
    return this.#arrivals.keepHead(moveId, head);
  }

  finishImport(moveId: string, head: MovedRootHead, firstEpoch: number): Promise<void> {
    return this.#arrivals.finishImport(moveId, head, firstEpoch);
  }

  endImport(moveId: string): Promise<void> {
    return this.#arrivals.endImport(moveId);
  }
}
