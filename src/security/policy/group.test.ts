// Tests of groups' names, principals, claims and roles.
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalUsername } from "#base/names.ts";
import {
  CLAIM_ROLE_LIFE_MS,
  checkedGroupName,
  claimValues,
  GROUP_MEMBERS_MAX,
  type Group,
  groupNameOf,
  groupPrincipal,
  personsUsername,
  rolesOfGroups,
} from "./group.ts";

const made = { setBy: "root@x.de", setAtMs: 5 };
const group = (more: Partial<Group> = {}): Group => ({
  name: "atlas",
  createdBy: "root@x.de",
  createdMs: 1,
  members: [],
  claims: [],
  ...more,
});
const person = (username: string, ...values: string[]) => ({ username, issuedMs: 7, seenMs: 9, values });

test("a group's principal is a username of the usual form, leads back to the group, and is no person's", () => {
  const owner = groupPrincipal(checkedGroupName("atlas-2.x"));
  assert.equal(canonicalUsername(owner), owner);
  assert.equal(groupNameOf(owner), "atlas-2.x");
  assert.equal(groupNameOf("dave@example.com"), undefined);
  assert.equal(groupNameOf("dave@group.example"), undefined);
  assert.throws(() => personsUsername("Atlas@GROUP"), { code: "BAD_ARGUMENT" });
  assert.equal(personsUsername("Dave@x.de"), "dave@x.de");
});

test("names of groups have their letters and length, on both sides of each limit", () => {
  for (const name of ["a", "a1", "a.b_c-d", "a".repeat(63)]) assert.equal(checkedGroupName(name), name);
  for (const name of ["", "A", "-a", "a-", "a b", "a@b", "ä", "a/b", "a".repeat(64)]) {
    assert.throws(() => checkedGroupName(name), { code: "BAD_ARGUMENT" }, name);
  }
});

test("a claim is a text or a list of texts; anything else names no group", () => {
  assert.deepEqual(claimValues("eng"), ["eng"]);
  assert.deepEqual(claimValues(["b", "a", "b", 7, "", null, "x\n", "y".repeat(257)]), ["a", "b"]);
  for (const value of [undefined, null, 7, { a: "eng" }, [["eng"]]]) assert.deepEqual(claimValues(value), []);
});

test("members by claim have the strongest role that their values give, until the claim's life is over", () => {
  const claims = [
    { value: "eng", role: "read" as const, ...made },
    { value: "leads", role: "manage" as const, ...made },
  ];
  const people = [person("a@x.de", "eng", "leads"), person("b@x.de", "eng"), person("c@x.de", "other")];
  const [roles] = rolesOfGroups({ groups: [group({ claims })], people }, { withClaims: true });
  const untilMs = 9 + CLAIM_ROLE_LIFE_MS;
  assert.deepEqual(roles?.roles, [
    { username: "a@x.de", role: "manage", setBy: "claim", setAtMs: 9, untilMs },
    { username: "b@x.de", role: "read", setBy: "claim", setAtMs: 9, untilMs },
  ]);
  const [none] = rolesOfGroups({ groups: [group({ claims })], people }, { withClaims: false });
  assert.deepEqual(none?.roles, []);
});

test("a member by hand keeps that role beside a stronger one by claim, and needs no weaker one", () => {
  const members = [
    { username: "a@x.de", role: "read" as const, ...made },
    { username: "b@x.de", role: "manage" as const, ...made },
  ];
  const claims = [{ value: "eng", role: "write" as const, ...made }];
  const people = [person("a@x.de", "eng"), person("b@x.de", "eng")];
  const [roles] = rolesOfGroups({ groups: [group({ members, claims })], people }, { withClaims: true });
  assert.deepEqual(
    roles?.roles.map(({ username, role, untilMs }) => [username, role, untilMs === 0]),
    [
      ["a@x.de", "read", true],
      ["a@x.de", "write", false],
      ["b@x.de", "manage", true],
    ],
  );
});

test("claims make at most as many members as a group may have", () => {
  const claims = [{ value: "all", role: "read" as const, ...made }];
  const people = Array.from({ length: GROUP_MEMBERS_MAX + 1 }, (_, index) => person(`u${index}@x.de`, "all"));
  const [roles] = rolesOfGroups({ groups: [group({ claims })], people }, { withClaims: true });
  assert.equal(roles?.roles.length, GROUP_MEMBERS_MAX);
});
