// The decisions about users as a MetaServer goes by them: its copy of the store's, which it goes on with while the store is away.
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { UserState } from "#base/user-state.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { type Entrant, UserStates } from "#security/identity/user-states.ts";

/** How often a MetaServer looks whether another one, or an operator, has put a decision into the store. */
export const USER_STATES_LOOK_INTERVAL_MS = 1_000;

/** What the gate works with. */
export interface UserStateGateDeps {
  readonly directory: Pick<Directory, "putUserStates" | "userStates" | "userStatesMark">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The gate of one MetaServer. */
export class UserStateGate {
  readonly states: UserStates = new UserStates();
  readonly #deps: UserStateGateDeps;
  readonly #stop: () => void;
  /** Of the store, when it was read last. */
  #mark: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(deps: UserStateGateDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(USER_STATES_LOOK_INTERVAL_MS, () => void this.look());
  }

  /** Throws USER_DISABLED for who is locked out, TOKEN_REJECTED for a token from before sessions were ended. */
  requireEntry(entrant: Entrant, issuedAtWallMs?: number): void {
    this.states.requireEntry(entrant, issuedAtWallMs);
  }

  /** Has decisions count here at once and keeps them in the store. Throws BAD_ARGUMENT, and what the store throws: then they count here, and are kept later. */
  async merge(states: readonly UserState[]): Promise<void> {
    const news = this.states.news(states);
    if (news.length === 0) return;
    this.states.take(news);
    // What the store adds to them is no news to it.
    this.states.take(this.states.news(await this.#deps.directory.putUserStates(news)));
  }

  /** Reads what the store has where it has changed, and gives it what it lacks, as after its loss. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#deps.log.debug("user_states_not_read", { error: errorText(error) }))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Ends the looking. */
  stop(): void {
    this.#stop();
  }

  async #look(): Promise<void> {
    const { directory } = this.#deps;
    const mark = await directory.userStatesMark();
    if (mark === this.#mark) return;
    const stored = await directory.userStates();
    this.states.take(this.states.news(stored));
    const missing = new UserStates(stored).news(this.states.list());
    if (missing.length > 0) await directory.putUserStates(missing);
    else this.#mark = mark;
  }
}
