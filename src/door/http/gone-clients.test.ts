// What a door still does for clients that have gone counts as much as for those that wait.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { basic, HeldTree, requestText, startTestDoor } from "./door.fixture.ts";
import { DOOR_REQUESTS_PER_USER, DOOR_WAITING_PER_USER } from "./door-limits.ts";

test("who asks and goes, again and again, has no more under way than who waits", async (t) => {
  const tree = new HeldTree();
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  const request = requestText(door, "GET /dav/a");
  /** Asks on so many connections, and resets all of them once the door has all requests. */
  const askAndGo = async (count: number): Promise<void> => {
    const sockets = Array.from({ length: count }, () => connect(door.port, "127.0.0.1"));
    for (const socket of sockets) t.after(() => socket.destroy());
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets) socket.write(request);
    await until(() => door.front.load.underWay === count);
    for (const socket of sockets) socket.resetAndDestroy();
    await until(() => door.front.load.underWay === 0);
  };
  const atOnce = 2 * DOOR_REQUESTS_PER_USER;
  assert.ok(atOnce < DOOR_WAITING_PER_USER);
  for (let turn = 0; turn < 3; turn++) await askAndGo(atOnce);
  assert.equal(tree.underWay, DOOR_REQUESTS_PER_USER);
  tree.letGo();
  await until(() => tree.underWay === 0);
  const answer = await fetch(`http://${door.host}/dav/a`, { headers: { authorization: basic() } });
  assert.equal(answer.status, 404, "all places are free again");
});
