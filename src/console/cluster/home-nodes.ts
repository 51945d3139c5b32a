// Where each user's root lives, as the metadata store says: read again when somebody asks and the last look is 10 s old (spec 4.4, D5).
import type { Clock } from "#base/clock.ts";
import { ADDRESS_REREAD_INTERVAL_MS, ROOTS_LISTED_MAX } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { CONSOLE_USERS_MAX } from "./cluster-state.ts";

/** How old the list of users' homes may be by which alerts are judged: it is read again at every round that has somebody near a quota. */
const HOMES_OF_ALERTS_AGE_MS = 60_000;

/** What is asked of the store. */
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

  /** Node ids by username; the same map as before while nobody has read again. */
  get current(): ReadonlyMap<string, string> {
    return this.#homes;
  }

  /** The node of one user as far as it is known now, for those who ask all the time: it is at most about a minute behind. */
  ofUser(username: string): string | undefined {
    void this.refresh(HOMES_OF_ALERTS_AGE_MS);
    return this.#homes.get(username);
  }

  /** Reads again when that is due. Waits for the first reading alone: later ones show at the next call. A store that fails is logged. */
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
    // A store that has failed is asked again after the same time.
    this.#readAtMs = startedAtMs;
  }
}
