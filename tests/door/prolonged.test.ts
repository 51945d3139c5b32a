// A door's own sessions at FileServers go on as long as somebody works, and one that ended costs no call.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SHORT } from "#client/connection/cluster.ts";
import { makePerson } from "#door/tree/person.ts";
import { startDoors } from "./doors.fixture.ts";

const ALICE = "alice@example.com";

test("a session is prolonged with its token, and calls that meet its end get another", {
  timeout: 120_000,
}, async (t) => {
  const doors = await startDoors(t);
  const { tls, person } = await doors.door("d1");
  const { ca, cert, key } = tls;
  assert.ok(cert !== undefined && key !== undefined);
  const known = await person(await doors.password(ALICE));
  const gone = new AbortController();
  const { cluster } = makePerson({
    username: ALICE,
    profile: {
      metaservers: [],
      ca: String(ca),
      certificate: { cert: String(cert), key: String(key) },
      mock: false,
      idp: undefined,
      fileserver: doors.n1.address,
    },
    credential: () => Promise.reject(new Error("a door has no ID token")),
    door: { ...known, ticketFor: () => known.ticketFor("n1") },
    signal: gone.signal,
  });
  t.after(() => {
    gone.abort();
    cluster.close();
  });
  const { table } = doors.n1.node.service.callers.doors;
  const work = () => cluster.run("", SHORT, (server) => server.files.getQuota({}, server.unary));
  await work();
  const [first] = table.list(ALICE);
  for (let minute = 0; minute < 12; minute++) {
    doors.clock.advance(60_000);
    await cluster.prolong();
  }
  await work();
  assert.deepEqual(table.list(ALICE), [first]);
  // Nobody worked, and the first calls come together with the next prolongation.
  doors.clock.advance(400_000);
  const [, ...answers] = await Promise.all([cluster.prolong(), work(), work(), work()]);
  assert.equal(answers.length, 3);
  assert.equal(table.list(ALICE).length, 1);
  assert.notDeepEqual(table.list(ALICE), [first]);
});
