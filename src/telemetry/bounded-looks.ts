// Looks at the machine that may hang, such as at a mount whose server is gone: none is waited for without end.
import type { Clock } from "#base/clock.ts";
import { waitAtMost } from "#base/waiting.ts";

/** How long a look is waited for: less than a poll of the console waits for its answer. */
export const HOST_LOOK_MS = 2_000;

interface Look {
  readonly answer: Promise<unknown>;
  /** True when the wait for it has ended before it did. */
  isLate: boolean;
}

/** At most one look of each name at a time: one that hangs keeps a thread. */
export class BoundedLooks {
  readonly #clock: Pick<Clock, "after">;
  /** By name; of those under way. */
  readonly #underWay = new Map<string, Look>();

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** What a look answers; undefined after HOST_LOOK_MS, and at once while one that took longer goes on. */
  async at<T>(name: string, look: () => Promise<T>): Promise<T | undefined> {
    const before = this.#underWay.get(name);
    if (before !== undefined) return before.isLate ? undefined : this.#wait<T>(before);
    const answer = look().finally(() => this.#underWay.delete(name));
    const begun: Look = { answer, isLate: false };
    this.#underWay.set(name, begun);
    return this.#wait<T>(begun);
  }

  async #wait<T>(look: Look): Promise<T | undefined> {
    let answer: T | undefined;
    let hasAnswered = false;
    const answered = look.answer.then((found) => {
      answer = found as T;
      hasAnswered = true;
    });
    await waitAtMost(this.#clock, HOST_LOOK_MS, answered);
    look.isLate = !hasAnswered;
    return answer;
  }
}
