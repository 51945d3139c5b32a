// Prints notes about retries, rarely, although many transfers meet one outage at the same time.
import type { Clock } from "#base/clock.ts";
import { RETRY_NOTE_MS } from "#client/terminal/limits.ts";
import { isTty, note, type Terminal } from "#client/terminal/terminal.ts";

/** The notes about retries in one program. */
export class RetryNotes {
  readonly #terminal: Terminal;
  readonly #clock: Pick<Clock, "steadyMs">;
  #why = "";
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(terminal: Terminal, clock: Pick<Clock, "steadyMs">) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  /** Prints one line on standard error, above a progress bar; repeats a reason only after five seconds. */
  tell(why: string, wait: { readonly waitMs: number; readonly leftMs: number }): void {
    const nowMs = this.#clock.steadyMs();
    if (why === this.#why && nowMs - this.#toldAtMs < RETRY_NOTE_MS) return;
    this.#why = why;
    this.#toldAtMs = nowMs;
    if (isTty(this.#terminal.error)) this.#terminal.error.write("\r\u001b[K");
    const next = (wait.waitMs / 1_000).toFixed(1);
    const whole = Math.ceil(wait.leftMs / 1_000);
    note(this.#terminal, `${why} Trying again in ${next} s, and for ${whole} s more; Ctrl-C ends it.`);
  }
}
