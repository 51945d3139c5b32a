// Tests tickets and app passwords: forgeries, other doors and other clusters, ends.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { systemRandom } from "#base/random.ts";
import { makeAppPassword, readDoorSecret } from "./app-password.ts";
import { makeLinkToken, readLinkToken } from "./link-token.ts";
import { isWithinScope, type Scope, WHOLE_SCOPE } from "./scope.ts";
import {
  readTicket,
  signTicket,
  type Ticket,
  type TicketCheck,
  type TicketKey,
  type TicketKeys,
} from "./ticket.ts";

const pair = (id: string): { readonly signer: TicketKey; readonly known: [string, KeyObject] } => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { signer: { id, privateKey }, known: [id, publicKey] };
};
const first = pair("k1");
const second = pair("k2");
const keys: TicketKeys = new Map([first.known, second.known]);
const ticket: Ticket = {
  clusterId: "01M",
  username: "alice@example.com",
  issuer: "https://idp",
  subject: "7",
  audience: "node-1",
  doorKey: "ab".repeat(32),
  scope: { access: "read", folderId: "1z" },
  credential: "app:abc",
  issuedMs: 1_000_000,
};
const check: TicketCheck = {
  clusterId: "01M",
  audience: "node-1",
  doorKey: ticket.doorKey,
  wallMs: 1_000_000,
};
const refused = (text: string, at: Partial<TicketCheck> = {}, with_: TicketKeys = keys): void => {
  assert.throws(
    () => readTicket(text, with_, { ...check, ...at }),
    (error) => isGroveError(error, "TOKEN_REJECTED"),
  );
};

test("a ticket reads as it was signed, by either of two keys", () => {
  assert.deepEqual(readTicket(signTicket(ticket, first.signer), keys, check), ticket);
  const whole = { ...ticket, scope: WHOLE_SCOPE };
  assert.deepEqual(readTicket(signTicket(whole, second.signer), keys, check), whole);
});

test("a ticket is good for five minutes, and for clocks that are half a minute apart", () => {
  const text = signTicket(ticket, first.signer);
  readTicket(text, keys, { ...check, wallMs: 1_300_000 });
  readTicket(text, keys, { ...check, wallMs: 970_000 });
  refused(text, { wallMs: 1_300_001 });
  refused(text, { wallMs: 969_999 });
});

test("a ticket of another cluster, server, door or key is refused", () => {
  const text = signTicket(ticket, first.signer);
  refused(text, { clusterId: "01N" });
  refused(text, { audience: "node-2" });
  refused(text, { doorKey: "cd".repeat(32) });
  refused(text, {}, new Map([second.known]));
  refused(text, {}, new Map([["k1", second.known[1]]]));
  refused(signTicket(ticket, pair("k1").signer));
});

test("no change of any character leaves a ticket good", () => {
  const text = signTicket(ticket, first.signer);
  fc.assert(
    fc.property(
      fc.nat({ max: text.length - 1 }),
      fc.constantFrom("A", "a", "0", "_", "-", ".", "Z"),
      (place, letter) => {
        const changed = text.slice(0, place) + letter + text.slice(place + 1);
        // The last letter of a signature has bits that say nothing.
        if (changed === text || place === text.length - 1) return;
        refused(changed);
      },
    ),
  );
  for (const other of ["", ".", "a.b", `${text}.x`, "x".repeat(5000), text.split(".")[0] ?? ""])
    refused(other);
});

test("app passwords read back; a slip of the fingers is seen without a look-up", () => {
  const made = makeAppPassword(systemRandom);
  assert.match(made.text, /^gap_[a-z2-7]{12}_[a-z2-7]{38}$/u);
  assert.deepEqual(readDoorSecret(made.text), { kind: "app", id: made.id, hash: made.hash });
  fc.assert(
    fc.property(
      fc.nat({ max: made.text.length - 1 }),
      fc.constantFrom("a", "b", "z", "2", "7", "_"),
      (place, letter) => {
        const changed = made.text.slice(0, place) + letter + made.text.slice(place + 1);
        if (changed !== made.text) assert.equal(readDoorSecret(changed), undefined);
      },
    ),
  );
  for (const text of ["", "gap_", `${made.text}\n`, made.text.toUpperCase()])
    assert.equal(readDoorSecret(text), undefined);
});

test("a scope never widens another", () => {
  const read: Scope = { access: "read", folderId: undefined };
  const folder: Scope = { access: "write", folderId: "1a" };
  assert.equal(isWithinScope(read, WHOLE_SCOPE), true);
  assert.equal(isWithinScope(WHOLE_SCOPE, read), false);
  assert.equal(isWithinScope(folder, WHOLE_SCOPE), true);
  assert.equal(isWithinScope(WHOLE_SCOPE, folder), false);
  assert.equal(isWithinScope({ access: "write", folderId: "1b" }, folder), false);
  assert.equal(isWithinScope(read, folder), false);
});

test("tokens of links read back with their root, and nothing else does", () => {
  const made = makeLinkToken(systemRandom, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  const { id, hash } = made;
  assert.deepEqual(readLinkToken(made.token), { id, hash, rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
  const again = makeLinkToken(systemRandom, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  assert.notEqual(again.token.slice(-32), made.token.slice(-32));
  for (const text of ["", "gl_", `${made.token}a`, made.token.slice(0, -1), made.token.toUpperCase()]) {
    assert.equal(readLinkToken(text), undefined);
  }
});
