// A connection that is made when it is needed, and made anew after it broke; one statement at a time.
import type pg from "pg";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";

/** Dependencies of a line. */
export interface SharedLineDeps {
  readonly connect: () => Promise<pg.Client>;
  readonly clock: Clock;
  /** How long a statement may take before its connection counts as broken. */
  readonly answerMs: number;
}

/** Statements that may be asked again, since they read or hold a guard of their own. */
export class SharedLine {
  readonly #deps: SharedLineDeps;
  #client: pg.Client | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(deps: SharedLineDeps) {
    this.#deps = deps;
  }

  /** Runs statements after those before. Rejects with what pg throws; the next call connects anew then. */
  run<T>(ask: (client: pg.Client) => Promise<T>): Promise<T> {
    const mine = this.#last.then(() => this.#run(ask));
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  /** Ends the connection, also one that is being made. */
  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  #drop(): void {
    if (this.#client !== undefined) leave(this.#client);
    this.#client = undefined;
  }

  async #run<T>(ask: (client: pg.Client) => Promise<T>): Promise<T> {
    this.#client ??= await this.#deps.connect();
    const client = this.#client;
    if (this.#isClosed) {
      this.#drop();
      throw new GroveError("STORE_UNAVAILABLE", "the shared engine is being closed");
    }
    const cancel = this.#deps.clock.after(this.#deps.answerMs, () => {
      void client.end().catch(() => undefined);
    });
    try {
      return await ask(client);
    } catch (error) {
      if (this.#client === client) this.#drop();
      throw error;
    } finally {
      cancel();
    }
  }
}

/**
 * Ends a connection without waiting: a server that has stopped would never say goodbye. What is left of it
 * keeps no process from its end.
 */
export function leave(client: pg.Client): void {
  client.end().catch(() => undefined);
  // Its types leave it out.
  (client as pg.Client & { unref(): void }).unref();
}
