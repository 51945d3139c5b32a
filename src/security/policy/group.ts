// Groups of people who share a root: names, roles, members by hand and by claim, and who has which role.
import { GroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";

/** What a member may do: read; also change and delete; also share, and add and remove members. */
export type GroupRole = "read" | "write" | "manage";

/** The roles, the weakest first. */
export const GROUP_ROLES: readonly GroupRole[] = ["read", "write", "manage"];

/** Groups of a cluster. */
export const GROUPS_MAX = 1_000;
/** Members by hand of one group, and members by claim that count. */
export const GROUP_MEMBERS_MAX = 1_000;
/** Claim values of one group. */
export const GROUP_CLAIMS_MAX = 20;
/** Values of one person's ID token that are looked at. */
export const CLAIM_VALUES_READ = 1_000;
/** How long a claim counts after the last sign-in that named it. */
export const CLAIM_ROLE_LIFE_MS: number = 30 * 24 * 60 * 60_000;

const CLAIM_VALUE_MAX_LENGTH = 256;
const NAME = /^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;
const DOMAIN = "@group";

/** A member whom a person has added. */
export interface GroupMember {
  readonly username: string;
  readonly role: GroupRole;
  /** Username of the operator or manager, or "administrator" for the password. */
  readonly setBy: string;
  readonly setAtMs: number;
}

/** A value of the ID token's claim that makes people members. */
export interface GroupClaim {
  readonly value: string;
  readonly role: GroupRole;
  readonly setBy: string;
  readonly setAtMs: number;
}

/** A group. */
export interface Group {
  readonly name: string;
  readonly createdBy: string;
  readonly createdMs: number;
  readonly members: readonly GroupMember[];
  readonly claims: readonly GroupClaim[];
}

/** What a person's last ID token said, of the values that some group names. */
export interface ClaimRecord {
  readonly username: string;
  /** The token's `iat`, or the moment it was seen; an older token changes nothing. */
  readonly issuedMs: number;
  /** Exact to a day, where the token says anything. */
  readonly seenMs: number;
  readonly values: readonly string[];
}

/** All groups, and what claims say. */
export interface GroupBook {
  /** Changes with every change. */
  readonly mark: string;
  readonly groups: readonly Group[];
  readonly people: readonly ClaimRecord[];
}

/** A role that a person has now. */
export interface RoleGrant {
  readonly username: string;
  readonly role: GroupRole;
  /** "claim" for a member by claim. */
  readonly setBy: string;
  readonly setAtMs: number;
  /** Its end by the wall clock; 0 for none. */
  readonly untilMs: number;
}

/** A group with the roles of all its members. */
export interface GroupRoles {
  readonly name: string;
  /** By username. */
  readonly roles: readonly RoleGrant[];
}

/** A change of the groups. */
export type GroupChange =
  | { readonly kind: "create"; readonly group: Group }
  | { readonly kind: "delete"; readonly name: string }
  | { readonly kind: "add-member"; readonly name: string; readonly member: GroupMember }
  | { readonly kind: "remove-member"; readonly name: string; readonly username: string }
  | { readonly kind: "add-claim"; readonly name: string; readonly claim: GroupClaim }
  | { readonly kind: "remove-claim"; readonly name: string; readonly value: string }
  | { readonly kind: "person"; readonly record: ClaimRecord };

/** The checked name of a group. Throws BAD_ARGUMENT. */
export function checkedGroupName(text: string): string {
  if (NAME.test(text)) return text;
  throw new GroveError(
    "BAD_ARGUMENT",
    'a group\'s name has 1 to 63 lower-case letters, digits, ".", "_" and "-", and begins and ends with a letter or digit',
  );
}

/** The principal that owns a group's root; no person can sign in as it. */
export function groupPrincipal(name: string): string {
  return name + DOMAIN;
}

/** The test of a user and a group's principal: true where the user has a role in that group now. */
export function memberTest(groups: {
  roleOf(username: string, group: string): GroupRole | undefined;
}): (username: string, principal: string) => boolean {
  return (username, principal) => groups.roleOf(username, groupNameOf(principal) ?? "") !== undefined;
}

/** The group that owns a root; undefined for a person's root. */
export function groupNameOf(owner: string): string | undefined {
  if (!owner.endsWith(DOMAIN)) return undefined;
  const name = owner.slice(0, -DOMAIN.length);
  return NAME.test(name) ? name : undefined;
}

/** The canonical username of a person. Throws BAD_ARGUMENT for invalid ones, and for a group's principal. */
export function personsUsername(email: string): string {
  const username = canonicalUsername(email);
  if (!username.endsWith(DOMAIN)) return username;
  throw new GroveError("BAD_ARGUMENT", "that names a group, and a person is needed");
}

/** The checked role. Throws BAD_ARGUMENT. */
export function checkedGroupRole(text: string): GroupRole {
  const role = GROUP_ROLES.find((known) => known === text);
  if (role !== undefined) return role;
  throw new GroveError("BAD_ARGUMENT", "a role is read, write or manage");
}

/** The checked value of a claim. Throws BAD_ARGUMENT. */
export function checkedClaimValue(value: string): string {
  if (isClaimValue(value)) return value;
  throw new GroveError(
    "BAD_ARGUMENT",
    `a claim's value has 1 to ${CLAIM_VALUE_MAX_LENGTH} printable characters`,
  );
}

/** The usable values of a claim that is a text or a list of texts; none for anything else. */
export function claimValues(claim: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  const texts = values
    .slice(0, CLAIM_VALUES_READ)
    .filter((value): value is string => typeof value === "string" && isClaimValue(value));
  return [...new Set(texts)].toSorted();
}

/** The stronger of two roles. */
export function strongerRole(one: GroupRole, other: GroupRole): GroupRole {
  return GROUP_ROLES.indexOf(one) >= GROUP_ROLES.indexOf(other) ? one : other;
}

/**
 * Who has which role, by group name. A member by hand keeps at least that role; claims add to it. Without
 * claims only members by hand count.
 */
export function rolesOfGroups(
  { groups, people }: Pick<GroupBook, "groups" | "people">,
  options: { readonly withClaims: boolean },
): GroupRoles[] {
  const byValue = new Map<string, ClaimRecord[]>();
  for (const person of options.withClaims ? people : []) {
    for (const value of person.values) byValue.set(value, [...(byValue.get(value) ?? []), person]);
  }
  return groups.map((group) => ({ name: group.name, roles: rolesOf(group, byValue) }));
}

function rolesOf(
  { members, claims }: Group,
  byValue: ReadonlyMap<string, readonly ClaimRecord[]>,
): RoleGrant[] {
  const byClaim = new Map<string, RoleGrant>();
  for (const { value, role, setAtMs } of claims) {
    for (const { username, seenMs } of byValue.get(value) ?? []) {
      const known = byClaim.get(username)?.role ?? role;
      if (byClaim.size >= GROUP_MEMBERS_MAX && !byClaim.has(username)) continue;
      const untilMs = seenMs + CLAIM_ROLE_LIFE_MS;
      // The person has shown the value since: a removed address's later owner shows a token of their own.
      const atMs = Math.max(setAtMs, seenMs);
      byClaim.set(username, {
        username,
        role: strongerRole(known, role),
        setBy: "claim",
        setAtMs: atMs,
        untilMs,
      });
    }
  }
  const byHand = new Map(members.map((member) => [member.username, { ...member, untilMs: 0 }]));
  for (const grant of byClaim.values()) {
    const hand = byHand.get(grant.username);
    if (hand !== undefined && strongerRole(hand.role, grant.role) === hand.role)
      byClaim.delete(grant.username);
  }
  // A stronger role by claim ends with the claim, and the one by hand stays: both are listed.
  return [...byHand.values(), ...byClaim.values()].toSorted((a, b) => (a.username < b.username ? -1 : 1));
}

function isClaimValue(value: string): boolean {
  return (
    value !== "" &&
    value.length <= CLAIM_VALUE_MAX_LENGTH &&
    value.isWellFormed() &&
    !/[\p{Cc}\p{Cs}]/u.test(value)
  );
}
