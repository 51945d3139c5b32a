// Tests what others than the owner are answered once a root has moved away, or has come back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { Access, type Reached } from "./access.ts";

const OWNER = "alice@example.com";
const ROOT = { accessVersion: 1 };
const isElsewhere = (error: unknown): boolean =>
  error instanceof GroveError &&
  error.code === "WRONG_NODE" &&
  error.metadata["address"] === "n2:50051" &&
  !error.message.includes("your");

function accessTo(root: () => object | undefined): Access {
  return new Access({
    storage: { root, shares: { usersOf: () => undefined } } as unknown as Storage,
    adminUsername: undefined,
    homeAddressOf: () => "n2:50051",
    hasMoved: () => true,
    linkGoesOn: () => false,
  });
}

const reachedBy = (isOwner: boolean): Reached =>
  ({ owner: OWNER, isOwner, last: { id: 7 }, resolution: { root: ROOT } }) as unknown as Reached;
const person = (username: string) => makeVerifiedIdentity({ username, issuer: "", subject: "" });

test("a sharee's or a visitor's transfer goes on at the node to which the root has moved, the owner's where it began", () => {
  const access = accessTo(() => undefined);
  for (const permission of ["read", "write"] as const) {
    assert.throws(
      () => access.stillAllowed(person("bob@example.com"), reachedBy(false), permission),
      isElsewhere,
    );
    assert.equal(access.stillAllowed(person(OWNER), reachedBy(true), permission), true);
  }
});

test("a root that is here again is decided here, though it had moved away before", () => {
  const access = accessTo(() => ROOT);
  assert.equal(access.stillAllowed(person("bob@example.com"), reachedBy(false), "read"), true);
});
