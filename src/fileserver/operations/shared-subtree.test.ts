// Tests which shared subtree a place lies in, for sharees and for members of the root's group.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import { type Heir, memberOf } from "#security/policy/decide.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { Access, type Reached } from "./access.ts";

test("a member who reads alone has shares of their own, between which nothing moves without the right to delete", () => {
  const shares = { pathsOf: () => ({ granted: ["/a", "/b"], excluded: [] }) };
  const access = new Access({
    storage: { shares } as unknown as Storage,
    adminUsername: undefined,
    homeAddressOf: () => undefined,
  });
  const caller = makeVerifiedIdentity({ username: "bob@example.com", issuer: "", subject: "" });
  const depthAt = (names: readonly string[], heir: Heir | undefined): number =>
    access.sharedSubtree(caller, { owner: "atlas@group", names, heir } as unknown as Reached);
  const member = (role: "read" | "write"): Heir => memberOf(caller.username, "atlas", role);
  assert.equal(depthAt(["a", "x"], undefined), 1);
  assert.equal(depthAt(["a", "x"], member("read")), 1);
  assert.equal(depthAt(["c", "x"], member("read")), 2);
  assert.equal(depthAt(["a", "x"], member("write")), 0);
});
