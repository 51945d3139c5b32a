// Room for chunks that gather before they are sent: so many bytes in memory, then in files, then waiting.
import { FairQueue } from "#base/fair-queue.ts";

/** Bytes of chunks in memory, gathering or on their way to the store: 80 whole ones, five of an upload. */
export const STORE_MEMORY_BYTES = 320_000_000;
/** The same of one user: 20 whole ones. */
export const STORE_MEMORY_BYTES_PER_USER = 80_000_000;
/** Bytes of chunks that gather in local files because memory is taken, by slow senders or a slow store. */
export const STORE_SPILL_BYTES = 1_024_000_000;
/** The same of one user. */
export const STORE_SPILL_BYTES_PER_USER = 256_000_000;

/** Where a chunk may gather. */
export type ChunkPlace = "memory" | "file";

/** Bytes in memory and in files, of all users and of each. */
export interface ChunkRoomLimits {
  readonly memory: { readonly all: number; readonly each: number };
  readonly file: { readonly all: number; readonly each: number };
}

const LIMITS: ChunkRoomLimits = {
  memory: { all: STORE_MEMORY_BYTES, each: STORE_MEMORY_BYTES_PER_USER },
  file: { all: STORE_SPILL_BYTES, each: STORE_SPILL_BYTES_PER_USER },
};

/** A granted room. */
export interface GrantedRoom {
  readonly place: ChunkPlace | "none";
  /** Gives it back; once. */
  readonly release: () => void;
}

interface Waiting {
  readonly user: string;
  readonly bytes: number;
  readonly grant: (room: GrantedRoom) => void;
}

/**
 * Grants room for whole chunks. A chunk keeps its place until the store has it, so that a paused sender holds
 * no more than its own; users whose chunks find no place wait in turn.
 */
export class ChunkRoom {
  readonly #limits: ChunkRoomLimits;
  /** False while the local disk has its reserve only. */
  readonly #maySpill: () => boolean;
  readonly #used = { memory: new Used(), file: new Used() };
  readonly #waiting = new FairQueue<Waiting>();

  constructor(deps: { maySpill: () => boolean; limits?: ChunkRoomLimits }) {
    this.#maySpill = deps.maySpill;
    this.#limits = deps.limits ?? LIMITS;
  }

  /** Bytes that are granted now. */
  get bytes(): { readonly memory: number; readonly file: number } {
    return { memory: this.#used.memory.all, file: this.#used.file.all };
  }

  /** Chunks that wait for a place. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves with a place for a chunk of at most these bytes; with none when the signal aborts the wait, for
   * a chunk that is dropped.
   */
  take(user: string, bytes: number, signal: AbortSignal): Promise<GrantedRoom> {
    const room = this.#waiting.has(user) ? undefined : this.#grant(user, bytes);
    if (room !== undefined) return Promise.resolve(room);
    const { promise, resolve } = Promise.withResolvers<GrantedRoom>();
    const waiting = { user, bytes, grant: resolve };
    this.#waiting.push(user, waiting);
    const leave = (): void => {
      if (this.#waiting.remove(user, waiting)) resolve({ place: "none", release: () => undefined });
    };
    signal.addEventListener("abort", leave, { once: true });
    return promise;
  }

  #grant(user: string, bytes: number): GrantedRoom | undefined {
    const place = this.#placeFor(user, bytes);
    if (place === undefined) return undefined;
    const used = this.#used[place];
    used.add(user, bytes);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      used.add(user, -bytes);
      this.#serve();
    };
    return { place, release };
  }

  #placeFor(user: string, bytes: number): ChunkPlace | undefined {
    if (this.#used.memory.fits(user, bytes, this.#limits.memory)) return "memory";
    return this.#used.file.fits(user, bytes, this.#limits.file) && this.#maySpill() ? "file" : undefined;
  }

  #serve(): void {
    for (;;) {
      const next = this.#waiting.shift(({ user, bytes }) => this.#placeFor(user, bytes) !== undefined);
      if (next === undefined) return;
      next.grant(this.#grant(next.user, next.bytes) as GrantedRoom);
    }
  }
}

/** Bytes of all users and of each. */
class Used {
  all = 0;
  readonly #each = new Map<string, number>();

  fits(user: string, bytes: number, limit: { all: number; each: number }): boolean {
    return this.all + bytes <= limit.all && (this.#each.get(user) ?? 0) + bytes <= limit.each;
  }

  add(user: string, bytes: number): void {
    this.all += bytes;
    const own = (this.#each.get(user) ?? 0) + bytes;
    if (own > 0) this.#each.set(user, own);
    else this.#each.delete(user);
  }
}
