// A process's own lease: how long it may answer from what it knows, by clocks that count sleep.
import type { Clock } from "#base/clock.ts";

/** How long others watch an unchanged number before they take a process's roots. */
export const SHARED_LEASE_MS = 10_000;
/** Interval of renewals. */
export const SHARED_LEASE_RENEW_MS = 3_000;
/** Reads end so long before the lease, since an answer takes time on its way. */
export const SHARED_LEASE_MARGIN_MS = 2_000;
/** Pause after a renewal that failed. */
const RETRY_MS = 500;

/** Dependencies of a lease. */
export interface LeaseHolderDeps {
  readonly clock: Clock;
  /** Raises the process's number; false when others have ended the lease. Rejects when that is unknown. */
  readonly renew: () => Promise<boolean>;
  /** Called once, at the end of the lease: nothing may go to the store any more. */
  readonly ended: () => void;
  readonly leaseMs?: number;
}

/** A moment on both clocks that run while the machine does and while it sleeps. */
interface Moment {
  readonly steadyMs: number;
  readonly bootMs: number;
}

/**
 * The lease counts from before a renewal was asked for: other processes saw the number later. It ends once,
 * and a process that goes on afterwards does so under another name.
 */
export class LeaseHolder {
  readonly #deps: LeaseHolderDeps;
  readonly #leaseMs: number;
  #renewedAt: Moment | undefined;
  #isEnded = false;
  #isRenewing = false;
  #cancelNext: () => void = () => undefined;
  #cancelEnd: () => void = () => undefined;

  constructor(deps: LeaseHolderDeps) {
    this.#deps = deps;
    this.#leaseMs = deps.leaseMs ?? SHARED_LEASE_MS;
  }

  /** Starts with the lease that was taken at a moment before now. */
  start(takenAt: Moment): void {
    this.#renewedAt = takenAt;
    this.#watchEnd();
    this.#next(this.#leaseMs * (SHARED_LEASE_RENEW_MS / SHARED_LEASE_MS));
  }

  /** This moment, to be kept before a statement is asked whose answer begins a lease. */
  now(): Moment {
    const { clock } = this.#deps;
    return { steadyMs: clock.steadyMs(), bootMs: clock.bootMs?.() ?? 0 };
  }

  /** True while what this process knows of its roots is certainly true. */
  get mayRead(): boolean {
    return this.#leftMs() > this.#leaseMs * (SHARED_LEASE_MARGIN_MS / SHARED_LEASE_MS);
  }

  /** True while the lease runs. */
  get isHeld(): boolean {
    return this.#leftMs() > 0;
  }

  /** Time since the last renewal was asked for, by the clock that counted more. */
  get ageMs(): number {
    if (this.#renewedAt === undefined) return 0;
    const { steadyMs, bootMs } = this.now();
    return Math.max(steadyMs - this.#renewedAt.steadyMs, bootMs - this.#renewedAt.bootMs);
  }

  /** Ends it before its time. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelNext();
    this.#cancelEnd();
    this.#deps.ended();
  }

  #leftMs(): number {
    if (this.#isEnded || this.#renewedAt === undefined) return 0;
    return this.#leaseMs - this.ageMs;
  }

  #next(delayMs: number): void {
    this.#cancelNext = this.#deps.clock.after(delayMs, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    if (this.#isRenewing || this.#isEnded) return;
    this.#isRenewing = true;
    const askedAt = this.now();
    const isRenewed = await this.#deps.renew().catch(() => undefined);
    this.#isRenewing = false;
    if (this.#isEnded) return;
    // An answer that comes after the end comes too late, whatever it says: reads were refused meanwhile.
    if (isRenewed === false || !this.isHeld) return this.end();
    if (isRenewed === true) {
      this.#renewedAt = askedAt;
      this.#watchEnd();
    }
    this.#next(this.#leaseMs * ((isRenewed === true ? SHARED_LEASE_RENEW_MS : RETRY_MS) / SHARED_LEASE_MS));
  }

  #watchEnd(): void {
    this.#cancelEnd();
    this.#cancelEnd = this.#deps.clock.after(Math.max(1, this.#leftMs()), () => {
      if (this.isHeld) this.#watchEnd();
      else this.end();
    });
  }
}
