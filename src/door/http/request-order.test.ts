// Requests that a client sends at once on a connection of HTTP/1.1 happen in their order.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { until } from "#testing/until.ts";
import { HeldTree, requestText, sendRaw, startTestDoor, type TestDoor } from "./door.fixture.ts";

async function doorOf(t: TestContext): Promise<{ readonly door: TestDoor; readonly tree: HeldTree }> {
  const tree = new HeldTree(1);
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  return { door, tree };
}

test("of two changes sent at once the second begins when the first has its answer", async (t) => {
  const { door, tree } = await doorOf(t);
  const answers = sendRaw(
    door.port,
    requestText(door, "PUT /dav/a", "first") + requestText(door, "PUT /dav/a", "second", "Connection: close"),
  );
  await until(() => door.front.load.underWay === 2);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.equal(await tree.look(["a"]), undefined, "the second waits");
  tree.letGo();
  const statuses = [...(await answers).matchAll(/^HTTP\/1\.1 (\d+)/gmu)].map(([, status]) => status);
  assert.deepEqual(statuses, ["201", "204"]);
  const { etag = "", size = 0 } = (await tree.look(["a"])) ?? {};
  const parts: Uint8Array[] = [];
  await tree.read(["a"], etag, { start: 0, end: size }, (bytes) => {
    parts.push(...bytes);
    return true;
  });
  assert.equal(Buffer.concat(parts).toString(), "second");
});

test("a change that waits behind another is not begun once its client has gone", async (t) => {
  const { door, tree } = await doorOf(t);
  await tree.makeCollection(["b"], []);
  const socket = connect(door.port, "127.0.0.1");
  t.after(() => socket.destroy());
  await once(socket, "connect");
  socket.write(requestText(door, "PUT /dav/a", "first") + requestText(door, "DELETE /dav/b", ""));
  await until(() => door.front.load.underWay === 2);
  socket.resetAndDestroy();
  await until(() => door.front.load.underWay === 0);
  tree.letGo();
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.notEqual(await tree.look(["b"]), undefined);
});
