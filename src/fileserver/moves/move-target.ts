// The target's part in a move: pulls rounds of rows and chunk files, then switches and serves (D27).

import type { AuditAct } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { lastEpochBefore } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { pause } from "#base/waiting.ts";
import type {
  LocalMove,
  MoveBucket,
  MovedChunk,
  MoveReceipt,
  MoveTotals,
  RootMoveStorage,
} from "#storage/contract/root-move.ts";
import type { Client } from "#wire/grpc/client.ts";
import { MoveStep, type NodeMove, type RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import type { KnownMoves } from "./known-moves.ts";
import type { FrozenRoot, MovedProperties } from "./move-source.ts";
import { whileNotSilent } from "./silence.ts";

/** Buckets that may be left when the root is frozen: a fraction of a second's work. */
const LEFT_AT_FREEZE = 64;
/** Chunk bytes that may come in the last round before the freeze. */
const BYTES_AT_FREEZE = 16_000_000;
/** How long the rest may take, before the source takes the attempt back by itself. */
const FREEZE_BUDGET_MS = 3_500;
/** How often the store hears of the progress. */
const PROGRESS_INTERVAL_MS = 2_000;
/** The longest answer with rows: a bucket has at most some tens of megabytes. */
const ROWS_MAX_BYTES = 256_000_000;
/** Time limit of a call without a stream. */
const CALL_TIMEOUT_MS = 30_000;
/** Pause where rows wait for chunks that this node still removes. */
const REMOVAL_PAUSE_MS = 1_000;
/** Chunk files that are pulled side by side: each waits for the network, then for a flush. */
const CHUNKS_AT_ONCE = 4;

/** Dependencies of the target. */
export interface MoveTargetDeps {
  readonly moves: RootMoveStorage;
  readonly known: KnownMoves;
  /** A client of the node at an address; close it afterwards. */
  readonly connect: (address: string) => { readonly client: Client<typeof RootSource>; close(): void };
  readonly roomFor: (bytes: bigint) => boolean;
  /** Applies what goes along besides rows and chunks. */
  readonly takeProperties: (owner: string, properties: MovedProperties) => Promise<void>;
  readonly onArrived: (owner: string) => void;
  readonly audit: (act: AuditAct) => void;
  /** Waits so long that users' calls keep their share, after so many bytes were pulled. */
  readonly pace: (bytes: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

interface PulledRound {
  readonly buckets: readonly MoveBucket[];
  readonly left: number;
  readonly totals?: MoveTotals;
}

/** What has come of a move, over all of its runs. */
export interface MoveProgress {
  bytes: number;
  rows: number;
  left: number;
  reportedAtMs: number;
}

/** That of a move which begins. */
export function noProgress(): MoveProgress {
  return { bytes: 0, rows: 0, left: 0, reportedAtMs: Number.NEGATIVE_INFINITY };
}

/** One run of a move. */
export interface MoveRun {
  readonly source: Client<typeof RootSource>;
  readonly signal: AbortSignal;
  readonly progress: MoveProgress;
}

/** One move to this node. */
export class MoveTarget {
  readonly #deps: MoveTargetDeps;
  readonly #move: NodeMove;
  readonly #source: Client<typeof RootSource>;
  readonly #progress: MoveProgress;
  readonly #signal: AbortSignal;
  #receipts: readonly MoveReceipt[] = [];
  #lastBytes = 0;

  constructor(deps: MoveTargetDeps, move: NodeMove, { source, signal, progress }: MoveRun) {
    this.#deps = deps;
    this.#move = move;
    this.#source = source;
    this.#signal = signal;
    this.#progress = progress;
  }

  /** Pulls until the root lives here. Rejects when it cannot go on now; a repeated run goes on. */
  async run(): Promise<void> {
    const { moves, roomFor } = this.#deps;
    const { moveId, owner, secret, number: spare } = this.#move;
    if (await moves.isNear(owner)) return this.#takeNear();
    const isBegun = moves.list().some((one) => one.moveId === moveId);
    const afresh = !isBegun || moves.importTotals(moveId).rows === 0;
    const begin = { moveId, secret, afresh };
    const { number, usedBytes } = await this.#source.beginExport(begin, this.#options());
    // A part of a begun one is here already: each of its chunks asks for its own room.
    if (!isBegun && !roomFor(usedBytes)) throw noRoomFor(usedBytes);
    await moves.beginImport({ moveId, owner, numbers: [number, spare] });
    for (;;) {
      const left = await this.#round();
      // What this node still removes from before comes later, and not while users wait.
      const isKeptWaiting = this.#receipts.some(({ kind, checksum }) => kind === 1 && checksum === "");
      if (isKeptWaiting) await pause(this.#deps.clock, REMOVAL_PAUSE_MS, this.#signal);
      this.#signal.throwIfAborted();
      if (isKeptWaiting || left > LEFT_AT_FREEZE || this.#lastBytes > BYTES_AT_FREEZE) continue;
      try {
        await this.#switch();
      } finally {
        // Whatever has come of it, the source need not wait for the end of its time.
        const { secret } = this.#move;
        await this.#source.moveChanged({ moveId, secret }, this.#options()).catch(() => undefined);
      }
      return;
    }
  }

  /**
   * A root of the storage that both nodes share changes its holder alone, and the store hears of that afterwards:
   * whoever holds the root is its node, whatever becomes of this process.
   */
  async #takeNear(): Promise<void> {
    const { moves, known, takeProperties, onArrived, audit, log } = this.#deps;
    const { moveId, owner, secret, otherAddress: from } = this.#move;
    let { attempt } = this.#move;
    if (!(await moves.takeNear({ moveId, owner }))) {
      await this.#source.beginExport({ moveId, secret }, this.#options());
      ({ attempt } = await known.take({ moveId, step: MoveStep.FREEZE }));
      const { head } = await this.#source.freezeRoot({ moveId, secret, attempt }, this.#options());
      const { properties } = JSON.parse(Buffer.from(head).toString("utf8")) as FrozenRoot;
      await takeProperties(owner, properties);
      if (!(await moves.takeNear({ moveId, owner }))) {
        throw new GroveError("OVERLOADED", "the root was taken back meanwhile; once more");
      }
    } else if (this.#move.state === "copying") {
      ({ attempt } = await known.take({ moveId, step: MoveStep.FREEZE }));
    }
    await known.take({ moveId, step: MoveStep.SWITCH, attempt });
    onArrived(owner);
    log.info("root_handed_over", { user: owner });
    audit({ act: "root.arrived", actor: "node", subject: owner, detail: { from, bytes: 0 } });
    await this.#source.moveChanged({ moveId, secret }, this.#options()).catch(() => undefined);
  }

  /** Serves a root whose switch is in the store. */
  async finish(local: LocalMove): Promise<void> {
    const { moves, takeProperties, onArrived, audit, log } = this.#deps;
    const { head, properties } = JSON.parse(local.head) as FrozenRoot;
    await takeProperties(local.owner, properties);
    await moves.finishImport(local.moveId, head, lastEpochBefore(this.#move.number) + 1);
    onArrived(local.owner);
    const bytes = head.liveBytes + head.trashBytes;
    log.info("root_arrived", { user: local.owner, bytes });
    const detail = { from: this.#move.otherAddress, bytes };
    audit({ act: "root.arrived", actor: "node", subject: local.owner, detail });
  }

  async #switch(): Promise<void> {
    const { moves, known, clock } = this.#deps;
    const { moveId, secret } = this.#move;
    const { attempt } = await known.take({ moveId, step: MoveStep.FREEZE });
    const endMs = clock.steadyMs() + FREEZE_BUDGET_MS;
    const { head } = await this.#source.freezeRoot({ moveId, secret, attempt }, this.#options());
    let totals: MoveTotals | undefined;
    while (totals === undefined) {
      if (clock.steadyMs() > endMs) throw new GroveError("OVERLOADED", "the rest took too long; once more");
      totals = (await this.#pull()).totals;
    }
    const here = moves.importTotals(moveId);
    if (here.rows !== totals.rows || here.checksum !== totals.checksum) {
      // A source that has given the move up and begun again has not noted what it removed in between.
      await moves.endImport(moveId);
      throw new GroveError("CHECKSUM_MISMATCH", "what has arrived is not what was sent");
    }
    await moves.keepHead(moveId, Buffer.from(head).toString("utf8"));
    await known.take({ moveId, step: MoveStep.SWITCH, attempt });
    const local = moves.list().find((one) => one.moveId === moveId);
    if (local !== undefined) await this.finish(local);
  }

  /** Buckets that are left. The store hears of the progress also within a round, which may have many chunks. */
  async #round(): Promise<number> {
    await this.#pull(() => this.#report());
    await this.#report();
    return this.#progress.left;
  }

  async #pull(report?: () => Promise<void>): Promise<PulledRound> {
    const { moves } = this.#deps;
    const { moveId, secret } = this.#move;
    const receipts = this.#receipts.map(({ kind, a, b, changes, checksum, rows }) => ({
      kind,
      a: BigInt(a),
      b: BigInt(b),
      changes: BigInt(changes),
      checksum,
      rows,
    }));
    this.#receipts = [];
    const pieces: Uint8Array[] = [];
    let size = 0;
    const rows = this.#stream((options) => this.#source.pullRows({ moveId, secret, receipts }, options));
    for await (const { piece } of rows) {
      size += piece.length;
      if (size > ROWS_MAX_BYTES)
        throw new GroveError("BAD_ARGUMENT", "the source sends too many rows at once");
      pieces.push(piece);
    }
    const round = JSON.parse(Buffer.concat(pieces).toString("utf8")) as PulledRound;
    this.#progress.left = round.left + round.buckets.length;
    const gone = await this.#pullChunks(await moves.missingChunks(moveId, round.buckets), report);
    const whole = round.buckets.filter(
      ({ lines }) => gone.size === 0 || !lines.some((line) => [...gone].some((name) => line.includes(name))),
    );
    if (whole.length > 0) this.#receipts = await moves.putBuckets(moveId, whole);
    this.#progress.rows += whole.reduce((sum, { lines }) => sum + lines.length, 0);
    this.#progress.bytes += whole.reduce((sum, bucket) => sum + smallBytes(bucket), 0);
    await this.#deps.pace(size);
    return round;
  }

  /** Names of those that the source has no more. */
  async #pullChunks(
    chunks: readonly MovedChunk[],
    report?: () => Promise<void>,
  ): Promise<ReadonlySet<string>> {
    const gone = new Set<string>();
    this.#lastBytes = 0;
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let chunk = chunks[next++]; chunk !== undefined; chunk = chunks[next++]) {
        const bytes = await this.#pullChunk(chunk);
        if (bytes === undefined) gone.add(chunk.name);
        else await this.#deps.moves.putChunk(this.#move.moveId, chunk, bytes);
        await report?.();
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: CHUNKS_AT_ONCE }, lane));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    return gone;
  }

  async #pullChunk({ name, length }: MovedChunk): Promise<Buffer | undefined> {
    const { moveId, secret } = this.#move;
    if (!this.#deps.roomFor(BigInt(length))) throw noRoomFor(BigInt(length));
    const pieces: Uint8Array[] = [];
    let size = 0;
    let isFound = false;
    const chunk = this.#stream((options) => this.#source.pullChunk({ moveId, secret, name }, options));
    for await (const { found, data } of chunk) {
      isFound ||= found;
      size += data.length;
      if (size > length) throw new GroveError("CHECKSUM_MISMATCH", "a chunk is longer than its row says");
      pieces.push(data);
    }
    this.#progress.bytes += size;
    this.#lastBytes += size;
    await this.#deps.pace(size);
    return isFound ? Buffer.concat(pieces) : undefined;
  }

  async #report(): Promise<void> {
    const { clock, known, log } = this.#deps;
    if (clock.steadyMs() - this.#progress.reportedAtMs < PROGRESS_INTERVAL_MS) return;
    this.#progress.reportedAtMs = clock.steadyMs();
    const { bytes, rows, left } = this.#progress;
    const counts = { bytes: BigInt(bytes), rows: BigInt(rows), left: BigInt(left) };
    await known
      .take({ moveId: this.#move.moveId, step: MoveStep.PROGRESS, ...counts })
      .catch((error: unknown) => log.warn("move_progress_not_told", { error: errorText(error) }));
  }

  /** A stream has no time limit in all: over a slow line a chunk takes minutes. */
  #stream<T>(open: (options: { readonly signal: AbortSignal }) => AsyncIterable<T>): AsyncIterable<T> {
    const { clock } = this.#deps;
    return whileNotSilent({ clock, signal: this.#signal }, (signal) => open({ signal }));
  }

  #options(): { readonly signal: AbortSignal; readonly timeoutMs: number } {
    return { signal: this.#signal, timeoutMs: CALL_TIMEOUT_MS };
  }
}

function noRoomFor(bytes: bigint): GroveError {
  return new GroveError("DISK_RESERVE", `there is no room here for ${bytes} bytes above the reserve`);
}

/** Bytes of small contents, which travel in rows as base64; a little more than they are. */
function smallBytes({ kind, lines }: MoveBucket): number {
  if (kind !== 2) return 0;
  return Math.floor((lines.reduce((sum, line) => sum + line.length, 0) * 3) / 4);
}
