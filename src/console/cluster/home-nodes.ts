// Each user's home node from the store, read again on request when 10 s old (spec 4.4, D5).
import type { Clock } from "#base/clock.ts";
import { ADDRESS_REREAD_INTERVAL_MS, ROOTS_LISTED_MAX } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { CONSOLE_USERS_MAX } from "./cluster-state.ts";

/** Maximum age of the homes that alerts use; they are read again in each round with a user near a quota. */
const HOMES_OF_ALERTS_AGE_MS = 60_000;

/** The metadata store's calls and what else is needed. */
export interface HomeNodesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly directory: Pick<Directory, "listRoots">;
}

/** The homes of all users. */
export class HomeNodes {
  readonly #deps: HomeNodesDeps;
  #homes: ReadonlyMap<string, string> = new Map();
  #readAtMs: number | undefined;
  #reading: Promise<void> | undefined;

  constructor(deps: HomeNodesDeps) {
    this.#deps = deps;
  }

  /** Node ids by username; the same map until the next read. */
  get current(): ReadonlyMap<string, string> {
    return this.#homes;
  }

  /** The home of one user from the last read, at most about a minute old, for frequent callers. */
  ofUser(username: string): string | undefined {
    void this.refresh(HOMES_OF_ALERTS_AGE_MS);
    return this.#homes.get(username);
  }

  /** Reads again when due, and waits for the first read only. A store's error is logged. */
  async refresh(maxAgeMs: number = ADDRESS_REREAD_INTERVAL_MS): Promise<void> {
    const { clock } = this.#deps;
    const isFirst = this.#readAtMs === undefined;
    if (isFirst || clock.steadyMs() - (this.#readAtMs ?? 0) >= maxAgeMs) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined;
      });
    }
    if (isFirst) await this.#reading;
  }

  async #read(): Promise<void> {
    const { clock, log, directory } = this.#deps;
    const startedAtMs = clock.steadyMs();
    try {
      const homes = new Map<string, string>();
      let after: string | undefined;
      for (;;) {
        const page = await directory.listRoots(after);
        for (const { owner, fsId } of page) homes.set(owner, fsId);
        after = page.at(-1)?.owner;
        if (page.length < ROOTS_LISTED_MAX) break;
        if (homes.size >= CONSOLE_USERS_MAX) {
          log.warn("users_not_all_listed", { listed: homes.size });
          break;
        }
      }
      this.#homes = homes;
    } catch (error) {
      log.warn("roots_unread", { error: errorText(error) });
    }
    // After an error the store is read again at the same interval.
    this.#readAtMs = startedAtMs;
  }
}
