// A writer knows that its peer takes bytes once the kernel has taken all that it can.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { WriteProgress } from "./socket-writing.ts";

test("bytes that the kernel keeps are no sign of the peer, and those that it takes after a wait are", async (t) => {
  const accepted = Promise.withResolvers<Socket>();
  const listener = createServer((socket) => {
    socket.pause();
    accepted.resolve(socket);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const socket = connect((listener.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  const peer = await accepted.promise;
  t.after(() => {
    socket.destroy();
    peer.destroy();
    listener.close();
  });
  const progress = new WriteProgress();
  assert.equal(progress.look(socket), false);
  socket.write(Buffer.alloc(1_000));
  assert.equal(progress.look(socket), false);
  // More than the kernel keeps for both ends.
  socket.write(Buffer.alloc(64 * 1_048_576));
  assert.equal(progress.look(socket), false);
  peer.resume();
  await until(() => progress.look(socket));
  await until(() => socket.writableLength === 0);
  progress.look(socket);
  assert.equal(progress.look(socket), false);
  socket.destroy();
  assert.equal(progress.look(socket), false);
  assert.equal(progress.look(undefined), false);
});
