// Drives a copy slice by slice, so that other commands run between its slices (D13).

import { STALE_ACCESS_RETRIES } from "#base/limits.ts";
import { FairSlots } from "#storage/chunks/fair-slots.ts";
import type { CopyOrder, CopyTarget } from "#storage/contract/copy-order.ts";
import { type Counted, type InodeId, StaleAccessError } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";
import type { CopyJob } from "#storage/metadata/copy-messages.ts";
import { isCopied } from "#storage/writer/copy-commands.ts";
import { grown } from "#storage/writer/entry-words.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

/** Copies under way at once; others wait, round-robin over users. */
export const COPIES_AT_ONCE = 64;
/** The same for one user. */
export const COPIES_PER_USER = 4;
/** Copies that may wait; more are answered OVERLOADED. */
export const COPIES_WAITING = 4_096;
/** The same for one user; more are answered RATE_LIMITED. */
export const COPIES_WAITING_PER_USER = 64;
/**
 * Slices of copies at the storage writer at once, of different users; they bound the wait of other commands.
 */
export const COPY_SLICES_AT_ONCE = 2;

/** Dependencies of copies. */
export interface CopyRunnerDeps {
  readonly queue: Pick<WriteQueue, "submit">;
  /** Repeats a drop in the root of an inode. */
  readonly drops: { run(drop: () => Promise<unknown>, id: InodeId): Promise<void> };
  readonly nowMs: () => number;
}

/**
 * Runs copies, a few of each user. A copy is invisible until it is complete, and a failed one leaves nothing.
 */
export class CopyRunner {
  readonly #deps: CopyRunnerDeps;
  readonly #places = new FairSlots({
    what: "copies",
    slots: COPIES_AT_ONCE,
    slotsPerUser: COPIES_PER_USER,
    waiting: COPIES_WAITING,
    waitingPerUser: COPIES_WAITING_PER_USER,
  });
  /** One slice of a user is at the writer, at any number of copies. */
  readonly #slices = new FairSlots({
    what: "steps of copies",
    slots: COPY_SLICES_AT_ONCE,
    slotsPerUser: 1,
    waiting: COPIES_AT_ONCE,
    waitingPerUser: COPIES_PER_USER,
  });

  constructor(deps: CopyRunnerDeps) {
    this.#deps = deps;
  }

  /** Throws the errors of Storage.copy. */
  run(order: CopyOrder): Promise<{ target: CopyTarget; reply: Counted<ChangeReply> }> {
    return this.#places.run(order.by, () => this.#run(order), order.signal);
  }

  async #run(order: CopyOrder): Promise<{ target: CopyTarget; reply: Counted<ChangeReply> }> {
    const { by, maxBytes, maxInodes, mayGoOn, signal } = order;
    const { queue, nowMs } = this.#deps;
    const begun = await this.#decided(order, (wanted) =>
      queue.submit({ op: "beginCopy", ...wanted, maxBytes, maxInodes }),
    );
    if (!("job" in begun.reply)) return { target: begun.target, reply: begun.reply };
    let { job } = begun.reply;
    const { owner, accessVersion, seesAll } = begun.target;
    // The last step alone puts something into the tree, where a lock may be.
    const change = { owner, by, accessVersion, seesAll };
    try {
      while (!isCopied(job)) {
        if (job.bytes > maxBytes || job.inodes > maxInodes) throw grown();
        mayGoOn();
        const slice = { op: "copySlice", ...change, job } as const;
        const submit = () => queue.submit({ ...slice, nowMs: nowMs() });
        ({ job } = await this.#slices.run(by, submit, signal));
      }
      if (job.bytes > maxBytes || job.inodes > maxInodes) throw grown();
      const complete = job;
      return await this.#decided(order, (wanted) =>
        queue.submit({ op: "finishCopy", ...wanted, maxBytes, maxInodes, job: complete }),
      );
    } catch (error) {
      await this.#drop(job);
      throw error;
    }
  }

  async #decided<T>(
    { by, target, signal }: CopyOrder,
    submit: (wanted: CopyTarget & { nowMs: number }) => Promise<T>,
  ): Promise<{ target: CopyTarget; reply: T }> {
    const step = async (): Promise<{ target: CopyTarget; reply: T }> => {
      const wanted = target();
      return { target: wanted, reply: await submit({ ...wanted, nowMs: this.#deps.nowMs() }) };
    };
    for (let tries = 1; ; tries++) {
      try {
        return await againWhenRowsCome(() => this.#slices.run(by, step, signal));
      } catch (error) {
        if (!(error instanceof StaleAccessError) || tries >= STALE_ACCESS_RETRIES) throw error;
      }
    }
  }

  /** The slot is held until then, so that pending drops are bounded as copies are. */
  #drop(job: CopyJob): Promise<void> {
    const { queue, drops } = this.#deps;
    return drops.run(() => queue.submit({ op: "dropCopy", job }), job.sourceId);
  }
}
