// A MetaServer's copy of the decisions about users, which it applies while the store is away too.
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { UserState } from "#base/user-state.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { type Entrant, type MadeAt, UserStates } from "#security/identity/user-states.ts";

/** Interval of the checks for decisions that another MetaServer, or an operator, has put into the store. */
export const USER_STATES_LOOK_INTERVAL_MS = 1_000;

/** Decisions that one command gives to the store, each with a time of its own. */
const PUT_AT_ONCE = 200;

/** Dependencies of the gate. */
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
  /** The store's mark at the last read. */
  #mark: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(deps: UserStateGateDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(USER_STATES_LOOK_INTERVAL_MS, () => void this.look());
  }

  /** Throws USER_DISABLED for a locked user, TOKEN_REJECTED for a token from before sessions were ended. */
  requireEntry(entrant: Entrant, made?: MadeAt): void {
    this.states.requireEntry(entrant, made);
  }

  /**
   * Applies decisions here at once and stores them. Throws BAD_ARGUMENT, and the store's errors: then they
   * apply here and are stored later.
   */
  async merge(states: readonly UserState[]): Promise<void> {
    const news = this.states.news(states);
    if (news.length === 0) return;
    this.states.take(news);
    // The store's own additions are no news to it.
    this.states.take(this.states.news(await this.#deps.directory.putUserStates(news)));
  }

  /** Reads the store's changed decisions and gives it those it lacks, as after a loss. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#deps.log.debug("user_states_not_read", { error: errorText(error) }))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Stops the checks. */
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
    if (missing.length === 0) this.#mark = mark;
    // What is stored stays so when the time of a later slice is over: the next look has the rest.
    for (let at = 0; at < missing.length; at += PUT_AT_ONCE) {
      await directory.putUserStates(missing.slice(at, at + PUT_AT_ONCE));
    }
  }
}
