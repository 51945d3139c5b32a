// Decisions about users, by the store and this console: current for one user, seconds old for lists.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { ADDRESS_REREAD_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { laterState, type UserState } from "#base/user-state.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { type Inheritance, UserStates } from "#security/identity/user-states.ts";

/** The metadata store's calls and what else is needed. */
export interface DecidedUsersDeps {
  readonly clock: Pick<Clock, "steadyMs">;
  readonly log: Logger;
  readonly directory: Pick<Directory, "userStates">;
}

/** The decisions. One per console. */
export class DecidedUsers {
  readonly #deps: DecidedUsersDeps;
  /** This console's decisions, for times when the store does not answer; no more than the store keeps. */
  readonly #decided = new Map<string, UserState>();
  #locked: ReadonlySet<string> = new Set();
  #readAtMs: number | undefined;
  #reading: Promise<void> | undefined;
  #version = 0;

  constructor(deps: DecidedUsersDeps) {
    this.#deps = deps;
  }

  /** The decision about one user. Throws the store's error unless this console has a decision of its own. */
  async latest(username: string): Promise<UserState | undefined> {
    try {
      return await this.stored(username);
    } catch (error) {
      const own = this.#decided.get(username);
      if (own === undefined || !isGroveError(error, "STORE_UNAVAILABLE", "OVERLOADED")) throw error;
      return own;
    }
  }

  /**
   * The same, by the store's word too. Throws what the store throws: what was decided here may not be the
   * latest then.
   */
  async stored(username: string): Promise<UserState | undefined> {
    const own = this.#decided.get(username);
    const stored = (await this.#deps.directory.userStates()).find((state) => state.username === username);
    return own === undefined || stored === undefined ? (own ?? stored) : laterState(own, stored);
  }

  /** What was decided about one user here. */
  own(username: string): UserState | undefined {
    return this.#decided.get(username);
  }

  /** The roots handed over to a user. Without the store's answer, those that this console handed over. */
  async inheritedBy(username: string, nowMs: number): Promise<readonly Inheritance[]> {
    const stored = await this.#deps.directory.userStates().catch(() => []);
    const states = new UserStates(stored);
    states.take(states.news(this.#decided.values()));
    return states.inheritedBy(username, nowMs);
  }

  /** Remembers a decision of this console; lists show it from now on. */
  decide(state: UserState): void {
    this.#decided.set(state.username, state);
    if (state.disabled === this.#locked.has(state.username)) return;
    const locked = new Set(this.#locked);
    if (state.disabled) locked.add(state.username);
    else locked.delete(state.username);
    this.#show(locked);
  }

  /** Locked users as of the last read; the same set until one is locked or unlocked. */
  get locked(): ReadonlySet<string> {
    return this.#locked;
  }

  /** A number that changes with each new set in `locked`. */
  get version(): number {
    return this.#version;
  }

  /** Reads again when due, and waits for the first read only. A store's error is logged. */
  async refresh(): Promise<void> {
    const isFirst = this.#readAtMs === undefined;
    if (isFirst || this.#deps.clock.steadyMs() - (this.#readAtMs ?? 0) >= ADDRESS_REREAD_INTERVAL_MS) {
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
      const counting = new Map((await directory.userStates()).map((state) => [state.username, state]));
      for (const [username, own] of this.#decided) {
        const stored = counting.get(username);
        counting.set(username, stored === undefined ? own : laterState(own, stored));
      }
      const locked = new Set(
        [...counting.values()].flatMap((state) => (state.disabled ? state.username : [])),
      );
      if (locked.symmetricDifference(this.#locked).size > 0) this.#show(locked);
    } catch (error) {
      log.warn("user_states_unread", { error: errorText(error) });
    }
    // After an error the store is read again at the same interval.
    this.#readAtMs = startedAtMs;
  }

  #show(locked: ReadonlySet<string>): void {
    this.#locked = locked;
    this.#version++;
  }
}
