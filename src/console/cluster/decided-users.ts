// What is decided about users, as the metadata store says and as this console has decided since: fresh for one, a few seconds old for lists.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { ADDRESS_REREAD_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { laterState, type UserState } from "#base/user-state.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { type Inheritance, UserStates } from "#security/identity/user-states.ts";

/** What is asked of the store. */
export interface DecidedUsersDeps {
  readonly clock: Pick<Clock, "steadyMs">;
  readonly log: Logger;
  readonly directory: Pick<Directory, "userStates">;
}

/** The decisions. One for each console. */
export class DecidedUsers {
  readonly #deps: DecidedUsersDeps;
  /** What was decided here, for while the store does not answer; no more than the store keeps. */
  readonly #decided = new Map<string, UserState>();
  #locked: ReadonlySet<string> = new Set();
  #readAtMs: number | undefined;
  #reading: Promise<void> | undefined;
  #version = 0;

  constructor(deps: DecidedUsersDeps) {
    this.#deps = deps;
  }

  /** What counts about one user now. Throws what the store throws where nothing was decided here either. */
  async latest(username: string): Promise<UserState | undefined> {
    try {
      return await this.stored(username);
    } catch (error) {
      const own = this.#decided.get(username);
      if (own === undefined || !isGroveError(error, "STORE_UNAVAILABLE", "OVERLOADED")) throw error;
      return own;
    }
  }

  /** The same, by the store's word too. Throws what the store throws: what was decided here may not be the latest then. */
  async stored(username: string): Promise<UserState | undefined> {
    const own = this.#decided.get(username);
    const stored = (await this.#deps.directory.userStates()).find((state) => state.username === username);
    return own === undefined || stored === undefined ? (own ?? stored) : laterState(own, stored);
  }

  /** What was decided about one user here. */
  own(username: string): UserState | undefined {
    return this.#decided.get(username);
  }

  /** Whose roots are handed over to a user; where the store is away, as far as that was decided here. */
  async inheritedBy(username: string, nowMs: number): Promise<readonly Inheritance[]> {
    const stored = await this.#deps.directory.userStates().catch(() => []);
    const states = new UserStates(stored);
    states.take(states.news(this.#decided.values()));
    return states.inheritedBy(username, nowMs);
  }

  /** Remembers what was decided here: lists show it from now on. */
  decide(state: UserState): void {
    this.#decided.set(state.username, state);
    if (state.disabled === this.#locked.has(state.username)) return;
    const locked = new Set(this.#locked);
    if (state.disabled) locked.add(state.username);
    else locked.delete(state.username);
    this.#show(locked);
  }

  /** Those who are locked out, as of the last reading; the same set while nobody is locked out or let in. */
  get locked(): ReadonlySet<string> {
    return this.#locked;
  }

  /** Another number whenever `locked` is another set. */
  get version(): number {
    return this.#version;
  }

  /** Reads again when that is due. Waits for the first reading alone: later ones show at the next call. A store that fails is logged. */
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
    // A store that has failed is asked again after the same time.
    this.#readAtMs = startedAtMs;
  }

  #show(locked: ReadonlySet<string>): void {
    this.#locked = locked;
    this.#version++;
  }
}
