// Free ports: the search skips taken ones, and pairs keep the specification's distance.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { findFreePort, findFreePortPairs, isPortFree } from "./listen-ports.ts";

async function listen(port: number): Promise<Server> {
  const server = createServer().listen({ port, host: "127.0.0.1" });
  await once(server, "listening");
  return server;
}

test("a port that somebody listens on is not free, and free again afterwards", async () => {
  const server = await listen(0);
  const { port } = server.address() as { port: number };
  assert.equal(await isPortFree(port), false);
  assert.equal((await findFreePort(port)) > port, true);
  server.close();
  await once(server, "close");
  assert.equal(await isPortFree(port), true);
});

test("ports that others will take are passed over; what is no port is not free", async () => {
  const first = await findFreePort(52_000);
  assert.ok((await findFreePort(first, { taken: new Set([first]) })) > first);
  for (const port of [0, -1, 65_536, 1.5]) assert.equal(await isPortFree(port), false);
  await assert.rejects(findFreePort(65_536), (error) => isGroveError(error, "OVERLOADED"));
});

test("a pair is passed over when its metrics port is taken (spec 4.4)", async () => {
  const [pair] = await findFreePortPairs(52_100, 1);
  assert.ok(pair);
  const server = await listen(pair.metrics);
  const pairs = await findFreePortPairs(pair.grpc, 3);
  server.close();
  assert.equal(new Set(pairs.map(({ grpc }) => grpc)).size, 3);
  for (const { grpc, metrics } of pairs) {
    assert.equal(metrics, grpc - 41_000);
    assert.notEqual(grpc, pair.grpc);
  }
});
