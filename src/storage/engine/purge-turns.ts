// Removes what is detached in held roots, slice by slice; what cannot be removed keeps nothing else waiting.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import { PurgeCursor } from "#storage/writer/purge-cursor.ts";
import type { HeldRoots } from "./held-roots.ts";

/** Interval at which detached content is looked for. */
export const PURGE_MS = 500;
/** Pause of a root after its first failure; each further one is twice as long. */
const PURGE_PAUSE_MS = 2 * PURGE_MS;
/** Longest pause of a root between tries of what could not be removed. */
export const PURGE_PAUSE_MAX_MS = 60_000;
/** Slices of one root before the next root's. */
const SLICES_IN_A_TURN = 16;

/** A root with something detached, and the number of what was detached last. */
export interface DetachingRoot {
  readonly number: number;
  readonly newest: number;
}

/** Roots with something detached, which may be removed. By an index: there may be very much of it. */
export const DETACHING_ROOTS: string = `
  SELECT number, (SELECT id FROM purging WHERE coalesce(inode_id, content_id) / ${ROOT_STRIDE} = +root.number
    ORDER BY id DESC LIMIT 1) AS newest
  FROM root WHERE newest IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM root_move WHERE root_move.number = root.number AND state <> 'arrived')`;

/** Dependencies of the turns. */
export interface PurgeTurnsDeps {
  /** The answer of DETACHING_ROOTS in the cache. */
  readonly detaching: () => readonly DetachingRoot[];
  readonly writer: Pick<SharedWriter, "purgeSlice">;
  readonly roots: Pick<HeldRoots, "withNumber">;
  /** Something of this owner's root was removed. */
  readonly purged: (owner: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How far the removal in a root has come. */
interface Progress {
  readonly cursor: PurgeCursor;
  /** Until when the root waits, unless something newer is detached. */
  untilMs: number;
  /** How long it waits after its next failure. */
  pauseMs: number;
  newest: number;
}

/** Removes detached content of all held roots by turns, while there is some. */
export class PurgeTurns {
  readonly #deps: PurgeTurnsDeps;
  readonly #stop: () => void;
  /** By the number of the root; of those alone that have something detached. */
  readonly #progress = new Map<number, Progress>();
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(deps: PurgeTurnsDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(PURGE_MS, () => {
      this.#running ??= this.#purge().finally(() => {
        this.#running = undefined;
      });
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stop();
    await this.#running;
  }

  async #purge(): Promise<void> {
    const { detaching, roots, clock } = this.#deps;
    for (let isOver = false; !isOver; ) {
      isOver = true;
      const waiting = detaching();
      const numbers = new Set(waiting.map(({ number }) => number));
      for (const number of this.#progress.keys()) if (!numbers.has(number)) this.#progress.delete(number);
      for (const { number, newest } of waiting) {
        const owner = roots.withNumber(number)?.owner;
        if (owner === undefined) continue;
        const progress = this.#progressOf(number, newest);
        if (newest > progress.newest) {
          progress.cursor.lookAgain();
          progress.untilMs = 0;
        }
        if (progress.untilMs > clock.steadyMs()) continue;
        progress.newest = newest;
        if (await this.#turn(owner, progress)) isOver = false;
      }
    }
  }

  #progressOf(number: number, newest: number): Progress {
    let progress = this.#progress.get(number);
    if (progress === undefined) {
      progress = { cursor: new PurgeCursor(), untilMs: 0, pauseMs: PURGE_PAUSE_MS, newest };
      this.#progress.set(number, progress);
    }
    return progress;
  }

  /** True when more may be left that can be removed. Never rejects. */
  async #turn(owner: string, progress: Progress): Promise<boolean> {
    const { clock, logger } = this.#deps;
    let failure: unknown;
    for (let slices = 0; slices < SLICES_IN_A_TURN && !this.#isStopped; slices++) {
      const goesOn = await this.#slice(owner, progress).catch((error: unknown) => {
        failure ??= error;
        // Whatever else fails has nothing to do with what is removed.
        return isGroveError(error) && error.code === "INTERNAL" && progress.cursor.passOver();
      });
      if (goesOn) continue;
      progress.untilMs = clock.steadyMs() + progress.pauseMs;
      progress.pauseMs = Math.min(2 * progress.pauseMs, PURGE_PAUSE_MAX_MS);
      break;
    }
    if (failure !== undefined) logger.warn("engine.purge_failed", { user: owner, error: errorText(failure) });
    return !this.#isStopped && progress.untilMs <= clock.steadyMs();
  }

  async #slice(owner: string, progress: Progress): Promise<boolean> {
    if (!(await this.#deps.writer.purgeSlice(owner, progress.cursor))) return progress.cursor.atEnd();
    this.#deps.purged(owner);
    progress.cursor.removed();
    progress.pauseMs = PURGE_PAUSE_MS;
    return true;
  }
}
