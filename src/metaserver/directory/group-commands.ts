// The commands of the metadata store about groups and their members, as plans of one transaction each.
import { hash } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { dropSetting, dropSettings, putJson, putSetting, setting } from "#metaserver/sql/settings.ts";
import { all, get, type Plan } from "#metaserver/sql/sql-plan.ts";
import {
  type ClaimRecord,
  GROUP_CLAIMS_MAX,
  GROUP_MEMBERS_MAX,
  GROUPS_MAX,
  type Group,
  type GroupBook,
  type GroupChange,
} from "#security/policy/group.ts";

/** Settings, since a new table would shut out every MetaServer and console of the version before. */
const GROUP = "group:";
const PERSON = "group_claims:";
const MARK = "groups_mark";

/** People whose claims are kept; beyond, those without one are forgotten, then those not seen for longest. */
const PEOPLE_MAX = 50_000;
/** As many are forgotten at once, so that few newcomers cost a look at all. */
const FORGOTTEN_AT_ONCE = 1_000;

/** The mark, which changes with every change; empty before the first. */
export function* groupsMark(): Plan<string> {
  return (yield* setting(MARK)) ?? "";
}

/** All groups by name, and what the claims of people say. */
export function* groupBook(): Plan<GroupBook> {
  const mark = yield* groupsMark();
  const groups = yield* valuesOf<Group>(GROUP, GROUPS_MAX);
  const people = yield* valuesOf<ClaimRecord>(PERSON, PEOPLE_MAX);
  return {
    mark,
    groups: groups.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    people: people.toSorted((a, b) => (a.username < b.username ? -1 : 1)),
  };
}

/**
 * Applies a change, and returns the group as it was before it: undefined for a group that is new, and for
 * claims. Throws BAD_ARGUMENT for a group that is missing or exists, OVERLOADED beyond the limits.
 */
export function* changeGroups(change: GroupChange): Plan<Group | undefined> {
  if (change.kind === "person") {
    yield* notePerson(change.record);
    return undefined;
  }
  if (change.kind === "create") {
    yield* create(change.group);
    return undefined;
  }
  const group = yield* find(change.name);
  if (group === undefined) throw new GroveError("BAD_ARGUMENT", `there is no group ${change.name}`);
  const next = changed(group, change);
  if (next === undefined) yield* dropSetting(GROUP + group.name);
  else yield* putJson(GROUP + group.name, next);
  yield* mark(change);
  return group;
}

/** The group after a change; undefined for one that is deleted. Throws BAD_ARGUMENT, OVERLOADED. */
function changed(
  group: Group,
  change: Exclude<GroupChange, { kind: "create" | "person" }>,
): Group | undefined {
  switch (change.kind) {
    case "delete":
      return undefined;
    case "add-member": {
      const others = group.members.filter(({ username }) => username !== change.member.username);
      requireRoom(others.length, GROUP_MEMBERS_MAX, "members by hand");
      return { ...group, members: [...others, change.member] };
    }
    case "remove-member": {
      const left = group.members.filter(({ username }) => username !== change.username);
      if (left.length === group.members.length) {
        throw new GroveError("BAD_ARGUMENT", `${change.username} is no member by hand of ${group.name}`);
      }
      return { ...group, members: left };
    }
    case "add-claim": {
      const others = group.claims.filter(({ value }) => value !== change.claim.value);
      requireRoom(others.length, GROUP_CLAIMS_MAX, "claims");
      return { ...group, claims: [...others, change.claim] };
    }
    case "remove-claim":
    default: {
      const left = group.claims.filter(({ value }) => value !== change.value);
      if (left.length === group.claims.length) {
        throw new GroveError("BAD_ARGUMENT", `${group.name} has no such claim`);
      }
      return { ...group, claims: left };
    }
  }
}

/** Gives a person's memberships to their new name. */
export function* renameMember(from: string, to: string): Plan<void> {
  const { groups } = yield* groupBook();
  for (const group of groups) {
    const member = group.members.find(({ username }) => username === from);
    if (member === undefined) continue;
    const others = group.members.filter(({ username }) => username !== from && username !== to);
    const renamed: Group = { ...group, members: [...others, { ...member, username: to }] };
    yield* putJson(GROUP + group.name, renamed);
    yield* mark({ kind: "create", group: renamed });
  }
  const text = yield* setting(PERSON + from);
  if (text === undefined) return;
  const record: ClaimRecord = { ...(JSON.parse(text) as ClaimRecord), username: to };
  yield* dropSetting(PERSON + from);
  yield* putJson(PERSON + to, record);
  yield* mark({ kind: "person", record });
}

function* create(group: Group): Plan<void> {
  if ((yield* find(group.name)) !== undefined) {
    throw new GroveError("BAD_ARGUMENT", `there is a group ${group.name} already`);
  }
  const groups = yield* countOf(GROUP);
  requireRoom(groups, GROUPS_MAX, "groups");
  yield* putJson(GROUP + group.name, group);
  yield* mark({ kind: "create", group });
}

/** Keeps what a person's token says. Readers need not hear of one that says the same as the one before. */
function* notePerson(record: ClaimRecord): Plan<void> {
  const text = yield* setting(PERSON + record.username);
  const known = text === undefined ? undefined : (JSON.parse(text) as ClaimRecord);
  if (known !== undefined && known.issuedMs > record.issuedMs) return;
  if (known === undefined && (yield* countOf(PERSON)) >= PEOPLE_MAX) yield* forgetOldest();
  const seenMs = Math.max(record.seenMs, known?.seenMs ?? 0);
  yield* putJson(PERSON + record.username, { ...record, seenMs });
  const isSame = JSON.stringify(record.values) === JSON.stringify(known?.values ?? []);
  if (!isSame || (record.values.length > 0 && seenMs !== known?.seenMs))
    yield* mark({ kind: "person", record });
}

function* forgetOldest(): Plan<void> {
  const people = yield* valuesOf<ClaimRecord>(PERSON, PEOPLE_MAX);
  const rank = ({ values }: ClaimRecord): number => Math.min(1, values.length);
  const order = people.toSorted((a, b) => rank(a) - rank(b) || a.seenMs - b.seenMs);
  const keys = order.slice(0, FORGOTTEN_AT_ONCE).map(({ username }) => PERSON + username);
  yield* dropSettings(keys);
}

function* find(name: string): Plan<Group | undefined> {
  const text = yield* setting(GROUP + name);
  return text === undefined ? undefined : (JSON.parse(text) as Group);
}

function* mark(change: GroupChange): Plan<void> {
  const next = hash("sha256", (yield* groupsMark()) + JSON.stringify(change), "hex");
  yield* putSetting(MARK, next);
}

function* valuesOf<Value>(prefix: string, limit: number): Plan<Value[]> {
  const rows = yield* all<{ value: string }>(
    "SELECT value FROM settings WHERE key LIKE ? LIMIT ?",
    `${prefix}%`,
    limit,
  );
  return rows.map(({ value }) => JSON.parse(value) as Value);
}

function* countOf(prefix: string): Plan<number> {
  const row = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM settings WHERE key LIKE ?",
    `${prefix}%`,
  );
  return Number(row?.count ?? 0n);
}

function requireRoom(present: number, limit: number, what: string): void {
  if (present < limit) return;
  throw new GroveError("OVERLOADED", `there are ${limit} ${what}, the most that are kept`, {
    metadata: { limit: String(limit) },
  });
}
