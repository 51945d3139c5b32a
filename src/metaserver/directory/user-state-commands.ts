// The commands of the metadata store about decisions about users, and about who wants no notices, as plans.
import { hash } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { USER_STATES_MAX } from "#base/limits.ts";
import type { Removal } from "#base/removal.ts";
import { checkedUserState, laterState, type UserState } from "#base/user-state.ts";
import {
  addSetting,
  dropSetting,
  dropSettings,
  putSetting,
  putSettings,
  setting,
  settingsOf,
} from "#metaserver/sql/settings.ts";
import { all, batchesOf, get, type Plan } from "#metaserver/sql/sql-plan.ts";
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

/** Decisions that one statement reads or stores. */
const BATCH = 200;

/**
 * Stores those that are newer than the known decisions about their users, with the known person, and returns
 * the valid ones. Throws BAD_ARGUMENT, OVERLOADED beyond USER_STATES_MAX. The number of statements does not
 * grow with each decision: on PostgreSQL every one is a journey.
 */
export function* putUserStates(states: readonly UserState[]): Plan<UserState[]> {
  const counting: UserState[] = [];
  for (const batch of batchesOf(states, BATCH)) {
    counting.push(...(yield* putBatch(batch.map(checkedUserState))));
  }
  return counting;
}

function* putBatch(states: readonly UserState[]): Plan<UserState[]> {
  const persons = yield* personsOf(states);
  const stored = yield* storedOf(states);
  const known = new Map(stored);
  const changed = new Map<string, UserState>();
  const counting = states.map((state) => {
    const { username } = state;
    const told = withPerson(state, persons);
    const before = known.get(username);
    const later = before === undefined ? told : laterState(before, told);
    if (later !== before) changed.set(username, later);
    known.set(username, later);
    return later;
  });
  const news = [...changed.keys()].filter((username) => !stored.has(username));
  yield* requireRoomFor(news.length);
  if (changed.size > 0) {
    const texts = [...changed].map(([username, state]) => [username, JSON.stringify(state)] as const);
    yield* putSettings(texts.map(([username, text]) => [PREFIX + username, text]));
    // Whoever comes next with a released address has said nothing yet.
    const freed = [...changed].filter(([username, state]) =>
      isFreed(stored.get(username)?.removal, state.removal),
    );
    yield* dropSettings(freed.map(([username]) => NO_NOTICES + username));
    const sum = hash("sha256", texts.map(([, text]) => text).join("\n"), "hex");
    yield* putSetting(MARK, hash("sha256", (yield* userStatesMark()) + sum, "hex"));
  }
  return counting;
}

/** True where an address is released; not where a second removal is undone, whose user keeps everything. */
function isFreed(before: Removal | undefined, now: Removal | undefined): boolean {
  const wasTaken = before !== undefined && !before.isReleased;
  return wasTaken && now?.isReleased === true && now.dueAtMs !== before.earlierDueAtMs;
}

function* storedOf(states: readonly UserState[]): Plan<Map<string, UserState>> {
  const texts = yield* settingsOf(states.map(({ username }) => PREFIX + username));
  return new Map([...texts.values()].map(read).map((state) => [state.username, state]));
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
  // Whoever had the former address before stays removed; at the new one the person's own files may be older than that.
  const { removal } = known ?? {};
  const newer: UserState[] = [
    { ...decided, username: from, version: later(known?.version), tokensFromMs: nowMs, removal },
  ];
  const own = known?.handOvers?.filter((handOver) => handOver.to !== to && handOver.setBy !== to) ?? [];
  const before = states.find(({ username }) => username === to);
  if (own.length > 0 || before?.removal !== undefined)
    newer.push({ ...decided, username: to, version: later(before?.version), handOvers: own });
  for (const state of states) {
    const handOvers = state.handOvers ?? [];
    if (state.username === from || !handOvers.some((handOver) => handOver.to === from)) continue;
    const kept = handOvers.filter((handOver) => handOver.to !== to && state.username !== to);
    const renamed = kept.map((handOver) => (handOver.to === from ? { ...handOver, to } : handOver));
    newer.push({ ...state, version: later(state.version), handOvers: renamed });
  }
  yield* putUserStates(newer);
}

/** True for a decision that is to get the person known: only who is locked out is meant as one too. */
function lacksPerson({ subject, disabled }: UserState): boolean {
  return subject === "" && disabled;
}

function* personsOf(states: readonly UserState[]): Plan<Map<string, Subject>> {
  const names = states.filter(lacksPerson).map(({ username }) => username);
  if (names.length === 0) return new Map();
  const rows = yield* all<Subject & { username: string }>(
    `SELECT username, issuer, subject FROM subjects WHERE username IN (${names.map(() => "?").join(", ")})`,
    ...names,
  );
  return new Map(rows.map((row) => [row.username, row]));
}

function withPerson(state: UserState, persons: ReadonlyMap<string, Subject>): UserState {
  const person = lacksPerson(state) ? persons.get(state.username) : undefined;
  return person === undefined ? state : { ...state, issuer: person.issuer, subject: person.subject };
}

function* requireRoomFor(news: number): Plan<void> {
  if (news === 0) return;
  const count = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM settings WHERE key LIKE ?",
    `${PREFIX}%`,
  );
  if (count === undefined || Number(count.count) + news <= USER_STATES_MAX) return;
  throw new GroveError(
    "OVERLOADED",
    `there are decisions about ${USER_STATES_MAX} users, the most that are kept`,
    {
      metadata: { limit: String(USER_STATES_MAX) },
    },
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
    yield* addSetting(NO_NOTICES + username, "off");
  } else yield* dropSetting(NO_NOTICES + username);
}

/** Keeps what a person has said of notices under their new name. */
export function* renameNotices(from: string, to: string): Plan<void> {
  if (!(yield* noticesOff(from))) return;
  yield* setNoticesOff(from, false);
  yield* setNoticesOff(to, true);
}
