// A server's own copy of the decisions about users: `user_states.json` in the data folder, so that a lock
// holds during outages.
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { HAND_OVERS_PER_USER, USER_STATES_MAX } from "#base/limits.ts";
import { checkedUserState, type UserState } from "#base/user-state.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { type SetAsideDeps, setAside } from "#os/set-aside.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";
import { UserStates } from "./user-states.ts";

/** Name of the file in the data folder. */
export const USER_STATES_FILE = "user_states.json";

const bookFile = z.strictObject({
  schema: z.literal(1),
  users: z
    .array(
      z.strictObject({
        username: z.string(),
        disabled: z.boolean(),
        closesShares: z.boolean(),
        version: z.number(),
        reason: z.string(),
        setBy: z.string(),
        setAtMs: z.number(),
        tokensFromMs: z.number(),
        issuer: z.string(),
        subject: z.string(),
        handOvers: z
          .array(
            z.strictObject({
              to: z.string(),
              mayDelete: z.boolean(),
              reason: z.string(),
              setBy: z.string(),
              setAtMs: z.number(),
              untilMs: z.number(),
            }),
          )
          .max(HAND_OVERS_PER_USER)
          .optional(),
        removal: z
          .strictObject({
            dueAtMs: z.number(),
            isReleased: z.boolean(),
            earlierDueAtMs: z.number().optional(),
          })
          .optional(),
      }),
    )
    .max(USER_STATES_MAX),
});

/** Receives decisions the moment they take effect. */
export type StatesListener = (news: readonly UserState[], before: ReadonlyMap<string, UserState>) => void;

/** The store. */
export class UserStateStore {
  readonly states: UserStates;
  readonly #path: string;
  readonly #listeners = new Set<StatesListener>();
  #lastWrite: Promise<unknown> = Promise.resolve();

  private constructor(path: string, states: readonly UserState[]) {
    this.#path = path;
    this.states = new UserStates(states);
  }

  /**
   * Opens or creates the store. A damaged file is replaced by the generation before, and with `aside` set
   * aside and told: the last decision may be missing, and the next write would keep it as that generation.
   * Without a sound one throws CORRUPT: an empty store would lift every lock.
   */
  static async open(path: string, aside?: SetAsideDeps): Promise<UserStateStore> {
    const { content, current, isLost } = await readGenerations(path, readStates);
    if (!isLost) {
      if (current === "broken" && aside !== undefined) await setAside(path, aside);
      return new UserStateStore(path, content ?? []);
    }
    throw new GroveError(
      "CORRUPT",
      `${path} is damaged, and so is the generation before: nobody knows who is locked out; restore it from a backup, or ` +
        'put {"schema":1,"users":[]} in its place, and the metaserver tells the node who is',
    );
  }

  /** Calls back with new decisions at once, before they are on the disk; must not throw. */
  onNews(listener: StatesListener): void {
    this.#listeners.add(listener);
  }

  /**
   * Applies decisions that are newer than the known ones, and returns them. They take effect at once, and are
   * on stable storage when this resolves. A lock stays in force even when the file cannot be written. Throws
   * BAD_ARGUMENT, OVERLOADED, and errors of the write.
   */
  async merge(states: Iterable<UserState>): Promise<UserState[]> {
    const news = this.states.news(states);
    if (news.length > 0) {
      const before = new Map(
        news.flatMap(({ username }) => {
          const known = this.states.find(username);
          return known === undefined ? [] : [[username, known] as const];
        }),
      );
      this.states.take(news);
      for (const listener of this.#listeners) listener(news, before);
      this.#lastWrite = this.#lastWrite.catch(() => undefined).then(() => this.#write());
    }
    // A known decision may have come a moment ago, and not be on the disk yet.
    await this.#lastWrite;
    return news;
  }

  async #write(): Promise<void> {
    const content = JSON.stringify({ schema: 1, users: this.states.list() });
    await writeFileAtomic(this.#path, content, { keepPrevious: true });
  }
}

async function readStates(path: string): Promise<UserState[] | "missing" | "broken"> {
  const kept = await readStateFile(path, bookFile);
  if (typeof kept === "string") return kept;
  try {
    return kept.users.map(checkedUserState);
  } catch {
    return "broken";
  }
}
