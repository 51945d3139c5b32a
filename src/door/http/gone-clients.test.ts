// What a door still does for clients that have gone counts as much as for those that wait.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { MemoryTree } from "#door/webdav/memory-tree.fixture.ts";
import type { DavResource } from "#door/webdav/resource.ts";
import { until } from "#testing/until.ts";
import { basic, startTestDoor } from "./door.fixture.ts";
import { DOOR_REQUESTS_PER_USER, DOOR_WAITING_PER_USER } from "./door-limits.ts";

/** A tree whose looks wait until they are let go, as at a FileServer with much to do. */
class SlowTree extends MemoryTree {
  readonly held = Promise.withResolvers<void>();
  underWay = 0;

  override async look(path: readonly string[], withLocks?: boolean): Promise<DavResource | undefined> {
    this.underWay++;
    await this.held.promise;
    this.underWay--;
    return await super.look(path, withLocks);
  }
}

test("who asks and goes, again and again, has no more under way than who waits", async (t) => {
  const tree = new SlowTree();
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  const request = `GET /dav/a HTTP/1.1\r\nHost: ${door.host}\r\nAuthorization: ${basic()}\r\n\r\n`;
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
  tree.held.resolve();
  await until(() => tree.underWay === 0);
  const answer = await fetch(`http://${door.host}/dav/a`, { headers: { authorization: basic() } });
  assert.equal(answer.status, 404, "all places are free again");
});
