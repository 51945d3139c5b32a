// A door's people: whom a MetaServer recognises, with tickets that are asked for in time and no oftener.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createPeople } from "#door/people/people.ts";
import { as, nodeMessage, startForTest } from "#metaserver/process/meta-server.fixture.ts";
import { StatusError } from "#wire/framing/status.ts";

test("a person of a door has tickets of at least two minutes, and none once the password is revoked", async (t) => {
  const meta = await startForTest(t);
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  const alice = as("alice@example.com");
  const { password } = await client.createAppPassword(
    { name: "laptop", readOnly: true, folderId: "1z" },
    alice,
  );
  const people = createPeople({ metaServer: client, clock: meta.clock });
  await assert.rejects(people.identify("gap_wrong", "198.51.100.7"), StatusError);
  const person = await people.identify(password, "198.51.100.7");
  assert.equal(person.username, "alice@example.com");
  assert.deepEqual(person.scope, { access: "read", folderId: "1z" });
  const { roots } = await client.getRoots({}, { metadata: person.routeMetadata() });
  assert.deepEqual(
    roots.map(({ owner }) => owner),
    ["alice@example.com"],
  );
  const [ticket, same] = await Promise.all([person.ticketFor("a"), person.ticketFor("a")]);
  assert.equal(same, ticket);
  assert.notEqual(await person.ticketFor("b"), ticket);
  meta.clock.advance(179_999);
  assert.equal(await person.ticketFor("a"), ticket);
  meta.clock.advance(1);
  assert.notEqual(await person.ticketFor("a"), ticket);
  await client.revokeAppPassword({ which: "laptop" }, alice);
  meta.clock.advance(300_000);
  await assert.rejects(person.ticketFor("a"), StatusError);
});
