// Tests that held ports leave room for a server of their own, and none for outgoing connections.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { platform } from "node:os";
import { test } from "node:test";
import { freePort } from "#testing/free-ports.ts";
import { HeldPorts } from "./held-port.ts";
import { isPortFree } from "./listen-ports.ts";

const skip = platform() !== "linux" && "only Linux lets a server have a port that is held";

/** A connection that leaves from a port, as one does whose port the kernel has chosen. */
async function leaveFrom(localPort: number, port: number): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.1", localPort });
  await once(socket, "connect");
  return socket;
}

test("a port is held while a server may listen there, stop and listen again, and is free afterwards", {
  skip,
}, async () => {
  const [port, other] = [await freePort(), await freePort()];
  const held = new HeldPorts();
  assert.equal(await held.hold(port), true);
  for (let start = 0; start < 2; start++) {
    assert.equal(await isPortFree(port), true);
    const server = createServer((socket) => socket.end("served")).listen(port, "127.0.0.1");
    await once(server, "listening");
    const [data] = (await once(connect(port, "127.0.0.1"), "data")) as [Buffer];
    assert.equal(data.toString(), "served");
    server.close();
    await once(server, "close");
  }
  held.letGo();
  const target = createServer().listen(other, "127.0.0.1");
  await once(target, "listening");
  (await leaveFrom(port, other)).destroy();
  target.close();
});

test("a port with a listener is not held", { skip }, async (t) => {
  const port = await freePort();
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const held = new HeldPorts();
  t.after(() => held.letGo());
  assert.equal(await held.hold(port), false);
});

test("the kernel gives no held port to an outgoing connection", { skip }, async (t) => {
  const held = new HeldPorts();
  t.after(() => held.letGo());
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  const to = typeof address === "object" && address !== null ? address.port : 0;
  // Connections take many ports of the kernel's range; the held ones are among the next in turn.
  const first = connect(to, "127.0.0.1");
  await once(first, "connect");
  const from = first.localPort ?? 0;
  const wanted = Array.from({ length: 200 }, (_, at) => from + 2 * (at + 1)).filter((port) => port < 60_999);
  const kept = new Set<number>();
  for (const port of wanted) if (await held.hold(port)) kept.add(port);
  const sockets: Socket[] = [first];
  t.after(() => sockets.map((socket) => socket.destroy()));
  for (let at = 0; at < 2_000; at++) {
    const socket = connect(to, "127.0.0.1");
    sockets.push(socket);
    await once(socket, "connect");
    assert.equal(kept.has(socket.localPort ?? 0), false, `${socket.localPort} is held`);
  }
});
