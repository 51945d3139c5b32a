// The commands of the metadata store about administrators' decisions about users, as plans.
import { hash } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { USER_STATES_MAX } from "#base/limits.ts";
import { checkedUserState, laterState, type UserState } from "#base/user-state.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { setting } from "./node-commands.ts";
import type { Subject } from "./subject.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "user_state:";
/** Changes with every change of the decisions, so that readers can skip unchanged ones. */
const MARK = "user_states_mark";

/** All decisions, by username. */
export function* userStates(): Plan<UserState[]> {
  const rows = yield* all<{ value: string }>(
    "SELECT value FROM settings WHERE key LIKE ? LIMIT ?",
    `${PREFIX}%`,
    USER_STATES_MAX,
  );
  // Databases sort text by rules of their own.
  return rows.map(({ value }) => read(value)).toSorted((a, b) => (a.username < b.username ? -1 : 1));
}

/** The mark, which changes whenever they do; empty before the first. */
export function* userStatesMark(): Plan<string> {
  return (yield* setting(MARK)) ?? "";
}

/**
 * Stores those that are newer than the known decisions about their users, with the known person, and returns
 * the valid ones. Throws BAD_ARGUMENT, OVERLOADED beyond USER_STATES_MAX.
 */
export function* putUserStates(states: readonly UserState[]): Plan<UserState[]> {
  const counting: UserState[] = [];
  for (const unchecked of states) {
    const state = yield* withPerson(checkedUserState(unchecked));
    const row = yield* get<{ value: string }>(
      "SELECT value FROM settings WHERE key = ?",
      PREFIX + state.username,
    );
    const known = row === undefined ? undefined : read(row.value);
    const later = known === undefined ? state : laterState(known, state);
    counting.push(later);
    if (later === known) continue;
    if (known === undefined) yield* requireRoom();
    yield* put(PREFIX + later.username, JSON.stringify(later));
    yield* put(MARK, hash("sha256", (yield* userStatesMark()) + JSON.stringify(later), "hex"));
  }
  return counting;
}

function* withPerson(state: UserState): Plan<UserState> {
  // Only who is locked out is meant as a person too.
  if (state.subject !== "" || !state.disabled) return state;
  const person = yield* get<Subject>(
    "SELECT issuer, subject FROM subjects WHERE username = ?",
    state.username,
  );
  return person === undefined ? state : { ...state, issuer: person.issuer, subject: person.subject };
}

function* requireRoom(): Plan<void> {
  const count = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM settings WHERE key LIKE ?",
    `${PREFIX}%`,
  );
  if (count === undefined || count.count < USER_STATES_MAX) return;
  throw new GroveError(
    "OVERLOADED",
    `there are decisions about ${USER_STATES_MAX} users, the most that are kept`,
    {
      metadata: { limit: String(USER_STATES_MAX) },
    },
  );
}

function* put(key: string, value: string): Plan<void> {
  yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    key,
    value,
  );
}

function read(text: string): UserState {
  return checkedUserState(JSON.parse(text) as UserState);
}
