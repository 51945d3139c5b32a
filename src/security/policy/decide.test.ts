// Tests of the whole table of spec 5.4: every permission for every kind of caller, and answers that reveal
// nothing to strangers.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import {
  decide,
  decideHeld,
  decideQuotaView,
  type Heir,
  type Holder,
  heirByGroup,
  memberOf,
  type Permission,
  strongestHeir,
  type Target,
} from "./decide.ts";

const identity = (username: string) => makeVerifiedIdentity({ username, issuer: "", subject: "" });
const OWNER = "alice@example.com";
const SHAREE = "bob@example.com";
const STRANGER = "eve@example.com";
const ADMIN = "root@example.com";
const HEIR = "heir@example.com";
const FULL_HEIR = "full-heir@example.com";
const heirs = [
  { username: HEIR, mayDelete: false },
  { username: FULL_HEIR, mayDelete: true },
];
const target = { owner: OWNER, shared: ["carol@example.com", SHAREE], heirs };

type Row = readonly [
  caller: string,
  permission: Permission,
  answer: "allowed" | "NOT_OWNER" | "NOT_SHARED" | "NOT_ADMIN",
];
const TABLE: readonly Row[] = [
  [OWNER, "read", "allowed"],
  [OWNER, "write", "allowed"],
  [OWNER, "delete", "allowed"],
  [OWNER, "admin", "NOT_ADMIN"],
  [SHAREE, "read", "allowed"],
  [SHAREE, "write", "allowed"],
  [SHAREE, "delete", "NOT_OWNER"],
  [SHAREE, "admin", "NOT_ADMIN"],
  [STRANGER, "read", "NOT_SHARED"],
  [STRANGER, "write", "NOT_SHARED"],
  [STRANGER, "delete", "NOT_OWNER"],
  [STRANGER, "admin", "NOT_ADMIN"],
  [ADMIN, "read", "NOT_SHARED"],
  [ADMIN, "write", "NOT_SHARED"],
  [ADMIN, "delete", "NOT_OWNER"],
  [ADMIN, "admin", "allowed"],
  [HEIR, "read", "allowed"],
  [HEIR, "write", "allowed"],
  [HEIR, "delete", "NOT_OWNER"],
  [HEIR, "admin", "NOT_ADMIN"],
  [FULL_HEIR, "read", "allowed"],
  [FULL_HEIR, "write", "allowed"],
  [FULL_HEIR, "delete", "allowed"],
  [FULL_HEIR, "admin", "NOT_ADMIN"],
  [OWNER, "share", "allowed"],
  [SHAREE, "share", "NOT_OWNER"],
  [FULL_HEIR, "share", "NOT_OWNER"],
  [STRANGER, "share", "NOT_OWNER"],
  [ADMIN, "share", "NOT_OWNER"],
];

for (const [caller, permission, answer] of TABLE) {
  test(`${caller.split("@")[0]} asking to ${permission} alice's file shared with bob: ${answer} (spec 5.4)`, () => {
    const decision = decide(identity(caller), permission, target, ADMIN);
    assert.equal(decision.allowed ? "allowed" : decision.code, answer);
  });
}

test("without a configured administrator nobody is one, not even a caller with an empty name (spec 5.4)", () => {
  for (const adminUsername of [undefined, ""]) {
    for (const caller of [OWNER, ADMIN, ""]) {
      assert.equal(decide(identity(caller), "admin", target, adminUsername).allowed, false);
    }
  }
});

test("an administrator who owns a root keeps the owner's rights in it (spec 5.4)", () => {
  const own = { owner: ADMIN, shared: [] };
  for (const permission of ["read", "write", "delete", "admin"] as const) {
    assert.equal(decide(identity(ADMIN), permission, own, ADMIN).allowed, true);
  }
});

test("usernames are compared whole: no prefix, suffix or other case passes (spec 5.4)", () => {
  for (const caller of ["alice@example.co", "lice@example.com", "ALICE@example.com", "alice@example.com "]) {
    assert.equal(decide(identity(caller), "read", { owner: OWNER, shared: [] }, undefined).allowed, false);
    assert.equal(
      decide(identity(caller), "read", { owner: "x@y.z", shared: [OWNER] }, undefined).allowed,
      false,
    );
  }
});

test("a stranger's answer does not depend on the owner or on the shares, so that it tells nothing (D1)", () => {
  const name = fc.emailAddress().map((email) => email.toLowerCase());
  fc.assert(
    fc.property(
      name,
      fc.array(name),
      fc.constantFrom("read", "write", "delete", "share"),
      (owner, shared, permission) => {
        const caller = identity("stranger@nowhere.invalid");
        assert.deepEqual(
          decide(caller, permission as Permission, { owner, shared }, undefined),
          decide(caller, permission as Permission, { owner: "no-such-root@x.y", shared: [] }, undefined),
        );
      },
    ),
  );
});

test("a quota is shown to owner, sharee, heir and administrator, and to nobody else (D13)", () => {
  for (const caller of [OWNER, SHAREE, HEIR, ADMIN]) {
    assert.equal(decideQuotaView(identity(caller), target, ADMIN).allowed, true);
  }
  const refused = decideQuotaView(identity(STRANGER), target, ADMIN);
  assert.equal(refused.allowed ? "" : refused.code, "NOT_SHARED");
});

test("what was taken by a credential stands as long as its person may write there, within its folder", () => {
  const own = { owner: OWNER, shared: [], way: ["1", "2", "3"] };
  const within = (folderId: string | undefined): Holder => ({
    username: OWNER,
    limit: { access: "write", folderId },
  });
  const stands = (holder: Holder, at: Target): boolean => decideHeld(holder, at).allowed;
  assert.deepEqual(
    [within(undefined), within("2"), within("3"), within("4")].map((holder) => stands(holder, own)),
    [true, true, true, false],
  );
  // What lies elsewhere by now has no way to it.
  assert.equal(stands(within("2"), { ...own, way: undefined }), false);
  assert.equal(stands({ username: SHAREE }, { owner: OWNER, shared: [SHAREE] }), true);
  assert.equal(stands({ username: SHAREE }, { owner: OWNER, shared: [] }), false);
  const heirs = [{ username: HEIR, mayDelete: false }];
  assert.equal(stands({ username: HEIR }, { owner: OWNER, shared: [], heirs }), true);
});

test("a link's visitor reads below its inode, or puts there what is not there yet, and nothing else", () => {
  const visitor = (kind: "drop" | "read") => {
    const link = { id: "k", kind, owner: OWNER, inodeId: "5", visitor: "v" };
    return makeVerifiedIdentity({ username: "link:k", issuer: "", subject: "", link });
  };
  const there = { owner: OWNER, shared: [SHAREE, "link:k"], heirs };
  const allowed = (kind: "drop" | "read", way: string[] | undefined, owner = OWNER): string[] =>
    (["read", "write", "delete", "share", "admin"] as const).filter(
      (permission) => decide(visitor(kind), permission, { ...there, owner, way }, "link:k").allowed,
    );
  assert.deepEqual(allowed("read", ["1", "5"]), ["read"]);
  assert.deepEqual(allowed("read", ["1", "5", "7"]), ["read"]);
  assert.deepEqual(allowed("drop", ["1", "5"]), ["write"]);
  // What is there already is neither replaced nor seen.
  assert.deepEqual(allowed("drop", ["1", "5", "7"]), []);
  for (const kind of ["drop", "read"] as const) {
    assert.deepEqual(allowed(kind, ["1"]), []);
    assert.deepEqual(allowed(kind, ["1", "6"]), []);
    assert.deepEqual(allowed(kind, undefined), []);
    assert.deepEqual(allowed(kind, ["1", "5"], "other@example.com"), []);
    assert.deepEqual(allowed(kind, ["1", "5"], "link:k"), []);
  }
});

test("members of a group may do in its root what their role says, and share with the role to manage alone (D33)", () => {
  const owner = "atlas@group";
  const table = {
    read: ["read"],
    write: ["read", "write", "delete"],
    manage: ["read", "write", "delete", "share"],
  } as const;
  for (const role of ["read", "write", "manage"] as const) {
    const heirs = [memberOf(SHAREE, "atlas", role)];
    for (const permission of ["read", "write", "delete", "share", "admin"] as const) {
      const decision = decide(identity(SHAREE), permission, { owner, shared: [], heirs }, ADMIN);
      assert.equal(decision.allowed, (table[role] as readonly string[]).includes(permission), permission);
      assert.equal(
        decide(identity(STRANGER), permission, { owner, shared: [], heirs }, ADMIN).allowed,
        false,
      );
      // An app password holds for a group's root within its bounds, and below one folder of one's own not at all.
      const limit = { access: "read", folderId: undefined } as const;
      const bounded = makeVerifiedIdentity({ username: SHAREE, issuer: "", subject: "", limit });
      const read = decide(bounded, permission, { owner, shared: [], heirs }, ADMIN);
      assert.equal(read.allowed, permission === "read");
      const below = { ...bounded, limit: { access: "write", folderId: "f" } } as typeof bounded;
      assert.equal(decide(below, permission, { owner, shared: [], heirs, way: ["f"] }, ADMIN).allowed, false);
    }
  }
});

test("a member who may read alone still writes what is shared with them, and nothing else (D33)", () => {
  const heirs = [memberOf(SHAREE, "atlas", "read")];
  const shared = { owner: "atlas@group", shared: [SHAREE], heirs };
  assert.equal(decide(identity(SHAREE), "write", shared, ADMIN).allowed, true);
  const refused = decide(identity(SHAREE), "write", { ...shared, shared: [] }, ADMIN);
  assert.deepEqual(refused.allowed ? "" : [refused.code, refused.isReader], ["NOT_SHARED", true]);
});

test("a root handed over to a group gives its members no more than the handing over, and never to share", () => {
  const rights = (role: "read" | "write" | "manage", mayDelete: boolean): string[] => {
    const heirs = [heirByGroup(memberOf(SHAREE, "atlas", role), { mayDelete })];
    const target = { owner: OWNER, shared: [], heirs };
    return (["read", "write", "delete", "share"] as const).filter(
      (permission) => decide(identity(SHAREE), permission, target, ADMIN).allowed,
    );
  };
  assert.deepEqual(rights("read", true), ["read"]);
  assert.deepEqual(rights("write", false), ["read", "write"]);
  assert.deepEqual(rights("manage", true), ["read", "write", "delete"]);
});

test("of several ways into a root the one counts that gives most, in whatever order they are found", () => {
  const [reader, writer, manager] = (["read", "write", "manage"] as const).map((role) =>
    memberOf(SHAREE, "atlas", role),
  ) as [Heir, Heir, Heir];
  const own = { username: SHAREE, mayDelete: false };
  assert.equal(strongestHeir([]), undefined);
  const rising = [heirByGroup(reader, { mayDelete: true }), own, writer, manager];
  for (const [index, strongest] of rising.entries()) {
    const some = rising.slice(0, index + 1);
    assert.equal(strongestHeir(some), strongest);
    assert.equal(strongestHeir(some.toReversed()), strongest);
  }
});
