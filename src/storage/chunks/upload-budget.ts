// Bounds the bytes in flight to the disk, of all uploads together and of one user's.
import { KEPT_BUFFER_BYTES, WriteBuffers } from "./write-buffers.ts";

/** Bytes of all uploads together that may be on their way to the disk before their senders have to wait. */
export const UPLOADS_IN_FLIGHT_BYTES = 33_554_432;
/** The same for the uploads of one user. */
export const UPLOADS_IN_FLIGHT_BYTES_PER_USER = 8_388_608;
/**
 * Bytes that all uploads together gather before they write; each gathers its share, within the two limits
 * below.
 */
export const UPLOADS_GATHERED_BYTES = 16_777_216;
/** Smallest disk write of an upload, except its last. */
export const UPLOAD_GATHER_MIN_BYTES = 65_536;
/** Slices of an upload are gathered up to this size while its disk write before is still running. */
export const UPLOAD_GATHER_BYTES = 524_288;

/** The budget as one user's uploads see it. */
export interface UploadShare {
  /** True when senders have to wait. */
  readonly isSpent: boolean;
  /** Bytes that one upload gathers before it writes; fewer, the more uploads there are. */
  readonly gatherBytes: number;
  /** The buffers that uploads gather in. */
  readonly buffers: WriteBuffers;
  /** Registers the start of an upload. */
  begin(): void;
  /** Registers the end of an upload. */
  end(): void;
  take(byteCount: number): void;
  give(byteCount: number): void;
  /** Calls back once when the budget is no longer spent; at most one callback per upload waits. */
  whenFree(wake: () => void): void;
}

/** Counts bytes in flight and wakes waiting senders as they fall. */
export class UploadBudget {
  readonly buffers: WriteBuffers;
  #bytesInFlight = 0;
  #openUploads = 0;
  readonly #users = new Map<string, UserShare>();
  readonly #waiting = new Map<() => void, UserShare>();
  readonly #parts: number;

  /** A budget of one of several threads is that part of the whole. */
  constructor(parts = 1) {
    this.#parts = parts;
    this.buffers = new WriteBuffers(KEPT_BUFFER_BYTES / parts);
  }

  /** The share of a user, kept while uploads of that user are open. */
  shareOf(user: string): UploadShare {
    const share = this.#users.get(user) ?? new UserShare(user, this);
    this.#users.set(user, share);
    return share;
  }

  get isSpent(): boolean {
    return this.#bytesInFlight > UPLOADS_IN_FLIGHT_BYTES / this.#parts;
  }

  get gatherBytes(): number {
    const share = UPLOADS_GATHERED_BYTES / this.#parts / this.#openUploads;
    return Math.min(UPLOAD_GATHER_BYTES, Math.max(UPLOAD_GATHER_MIN_BYTES, share));
  }

  /** The most that one user's uploads may have in flight. */
  get bytesPerUser(): number {
    return UPLOADS_IN_FLIGHT_BYTES_PER_USER / this.#parts;
  }

  /** Users with open uploads. */
  get users(): number {
    return this.#users.size;
  }

  opened(count: 1 | -1, share: UserShare): void {
    this.#openUploads += count;
    this.#dropIdleBuffers();
    this.#forgetIdle(share);
  }

  moved(byteCount: number, share: UserShare): void {
    this.#bytesInFlight += byteCount;
    this.#forgetIdle(share);
    this.#dropIdleBuffers();
    if (byteCount > 0 || this.isSpent || this.#waiting.size === 0) return;
    const free = [...this.#waiting].filter(([, share]) => !share.isSpent);
    for (const [wake] of free) {
      this.#waiting.delete(wake);
      wake();
    }
  }

  wait(wake: () => void, share: UserShare): void {
    this.#waiting.set(wake, share);
  }

  #dropIdleBuffers(): void {
    if (this.#openUploads === 0 && this.#bytesInFlight === 0) this.buffers.drop();
  }

  #forgetIdle(share: UserShare): void {
    if (share.isIdle) this.#users.delete(share.user);
  }
}

class UserShare implements UploadShare {
  readonly user: string;
  readonly #budget: UploadBudget;
  #bytesInFlight = 0;
  #openUploads = 0;

  constructor(user: string, budget: UploadBudget) {
    this.user = user;
    this.#budget = budget;
  }

  get isIdle(): boolean {
    return this.#openUploads === 0 && this.#bytesInFlight === 0;
  }

  get isSpent(): boolean {
    return this.#budget.isSpent || this.#bytesInFlight > this.#budget.bytesPerUser;
  }

  get gatherBytes(): number {
    return this.#budget.gatherBytes;
  }

  get buffers(): WriteBuffers {
    return this.#budget.buffers;
  }

  begin(): void {
    this.#openUploads++;
    this.#budget.opened(1, this);
  }

  end(): void {
    this.#openUploads--;
    this.#budget.opened(-1, this);
  }

  take(byteCount: number): void {
    this.#bytesInFlight += byteCount;
    this.#budget.moved(byteCount, this);
  }

  give(byteCount: number): void {
    this.#bytesInFlight -= byteCount;
    this.#budget.moved(-byteCount, this);
  }

  whenFree(wake: () => void): void {
    this.#budget.wait(wake, this);
  }
}
