// The commands of the metadata store about decisions about users, and about who wants no notices, as plans.
import { hash } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { USER_STATES_MAX } from "#base/limits.ts";
import { checkedUserState, laterState, type UserState } from "#base/user-state.ts";
import { setting } from "#metaserver/sql/settings.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
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

/**
 * Gives what was decided about a person to their new name, and ends the sessions of the former one. Throws
 * BAD_ARGUMENT for a name that is locked out or removed.
 */
export function* renameUserStates(from: string, to: string, nowMs: number): Plan<void> {
  const states = yield* userStates();
  for (const { username, disabled, removal } of states) {
    if (username !== from && username !== to) continue;
    if (disabled || (removal !== undefined && !removal.isReleased))
      throw new GroveError(
        "BAD_ARGUMENT",
        `${username} is locked out or removed: enable that user first; nothing was changed`,
      );
  }
  const known = states.find(({ username }) => username === from);
  const later = (version = 0): number => Math.max(version + 1, nowMs);
  const fresh = {
    disabled: false,
    closesShares: false,
    reason: "the address was changed",
    issuer: "",
    subject: "",
  };
  const decided = { ...fresh, setBy: "administrator", setAtMs: nowMs, tokensFromMs: 0 };
  const newer: UserState[] = [
    { ...decided, username: from, version: later(known?.version), tokensFromMs: nowMs },
  ];
  const own = known?.handOvers?.filter((handOver) => handOver.to !== to && handOver.setBy !== to);
  if (own !== undefined && own.length > 0) {
    const before = states.find(({ username }) => username === to);
    newer.push({ ...decided, username: to, version: later(before?.version), handOvers: own });
  }
  for (const state of states) {
    const handOvers = state.handOvers ?? [];
    if (state.username === from || !handOvers.some((handOver) => handOver.to === from)) continue;
    const kept = handOvers.filter((handOver) => handOver.to !== to && state.username !== to);
    const renamed = kept.map((handOver) => (handOver.to === from ? { ...handOver, to } : handOver));
    newer.push({ ...state, version: later(state.version), handOvers: renamed });
  }
  yield* putUserStates(newer);
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

/** A setting for each of them, since a new table would shut out the MetaServers of the version before. */
const NO_NOTICES = "no_notices:";

/** True for a user who wants no notices. */
export function* noticesOff(username: string): Plan<boolean> {
  return (yield* setting(NO_NOTICES + username)) !== undefined;
}

/** Turns a user's notices off, or on again. */
export function* setNoticesOff(username: string, isOff: boolean): Plan<void> {
  if (isOff) {
    yield* run(
      "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
      NO_NOTICES + username,
      "off",
    );
  } else yield* run("DELETE FROM settings WHERE key = ?", NO_NOTICES + username);
}

/** Keeps what a person has said of notices under their new name. */
export function* renameNotices(from: string, to: string): Plan<void> {
  if (!(yield* noticesOff(from))) return;
  yield* setNoticesOff(from, false);
  yield* setNoticesOff(to, true);
}
