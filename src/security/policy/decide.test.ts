// Tests of the whole table of spec 5.4: every permission for every kind of caller, and answers that reveal
// nothing to strangers.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import { decide, decideQuotaView, type Permission } from "./decide.ts";

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
