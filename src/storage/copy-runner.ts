// Drives a copy slice by slice, so that the commands of others run between its slices (D13).
import { GroveError } from "#base/errors.ts";
import { COPIES_AT_ONCE, STALE_ACCESS_RETRIES } from "#base/limits.ts";
import type { ChangeReply } from "./change-messages.ts";
import { grown, isCopied } from "./copy-commands.ts";
import type { CopyJob } from "./copy-messages.ts";
import type { CopyOrder, CopyTarget } from "./copy-order.ts";
import { StaleAccessError } from "./inode.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Runs copies. Until one is complete nothing of it can be seen, and one that fails leaves nothing. */
export class CopyRunner {
  readonly #queue: WriteQueue;
  readonly #nowMs: () => number;
  #running = 0;

  constructor(deps: { queue: WriteQueue; nowMs: () => number }) {
    this.#queue = deps.queue;
    this.#nowMs = deps.nowMs;
  }

  async run(order: CopyOrder): Promise<{ target: CopyTarget; reply: ChangeReply }> {
    if (this.#running >= COPIES_AT_ONCE) {
      throw new GroveError("OVERLOADED", "too many copies are under way; try again");
    }
    this.#running++;
    try {
      return await this.#run(order);
    } finally {
      this.#running--;
    }
  }

  async #run({ target, maxBytes }: CopyOrder): Promise<{ target: CopyTarget; reply: ChangeReply }> {
    const queue = this.#queue;
    const begun = await this.#decided(target, (wanted) =>
      queue.submit({ op: "beginCopy", ...wanted, maxBytes }),
    );
    if (!("job" in begun.reply)) return { target: begun.target, reply: begun.reply };
    let { job } = begun.reply;
    const { owner, by, accessVersion } = begun.target;
    try {
      while (!isCopied(job)) {
        if (job.bytes > maxBytes) throw grown();
        const nowMs = this.#nowMs();
        ({ job } = await queue.submit({ op: "copySlice", owner, by, accessVersion, nowMs, job }));
      }
      if (job.bytes > maxBytes) throw grown();
      const complete = job;
      return await this.#decided(target, (wanted) =>
        queue.submit({ op: "finishCopy", ...wanted, maxBytes, job: complete }),
      );
    } catch (error) {
      await this.#drop(job);
      throw error;
    }
  }

  async #decided<T>(
    target: () => CopyTarget,
    submit: (wanted: CopyTarget & { nowMs: number }) => Promise<T>,
  ): Promise<{ target: CopyTarget; reply: T }> {
    for (let tries = 1; ; tries++) {
      const wanted = target();
      try {
        return { target: wanted, reply: await submit({ ...wanted, nowMs: this.#nowMs() }) };
      } catch (error) {
        if (!(error instanceof StaleAccessError) || tries >= STALE_ACCESS_RETRIES) throw error;
      }
    }
  }

  /** Refused after a failure of the store: start-up finds what is left. */
  async #drop(job: CopyJob): Promise<void> {
    await this.#queue.submit({ op: "dropCopy", job }).catch(() => undefined);
  }
}
