// A node's counts of attempted and failed calls include each call once, of every kind (T4).
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { CALLS_APART } from "#fileserver/front/call-log.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { startTestNode, type TestNode } from "./node.fixture.ts";

interface Counters {
  readonly attempts: number;
  readonly errors: number;
  readonly operations: number;
}

async function counters(node: TestNode): Promise<Counters> {
  const answer = await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics`);
  const document = (await answer.json()) as Record<string, number>;
  const of = (name: string): number => document[name] ?? Number.NaN;
  return {
    attempts: of("attempts_total"),
    errors: of("errors_total"),
    operations: of("write_ops_total") + of("read_ops_total"),
  };
}

const register = (node: TestNode, token: string): Promise<unknown> =>
  node.anonymous.registerClient({}, { metadata: { authorization: `Bearer ${token}` } });

test("a sign-in that the provider cannot judge is an attempt that failed; one that is refused is none (T4)", async () => {
  const provider = createServer((_request, response) => response.writeHead(503).end());
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  const node = await startTestNode({
    env: { IDP_CLIENT_ID: "c", IDP_TOKENINFO_URL: `http://127.0.0.1:${port}/tokeninfo` },
  });
  try {
    const user = await node.signIn("a@example.com");
    for (let at = 0; at < 25; at++) await user.call.getAttr({ path: "/" });
    const before = await counters(node);
    assert.deepEqual(before, { attempts: 26, errors: 0, operations: 25 });
    for (let at = 0; at < 20; at++) await register(node, `token-${at}`).catch(() => undefined);
    assert.deepEqual(await counters(node), { attempts: 46, errors: 20, operations: 25 });
    for (let at = 0; at < 10; at++) await register(node, `mock-jwt.bad-${at}`).catch(() => undefined);
    assert.deepEqual(await counters(node), { attempts: 46, errors: 20, operations: 25 });
    await user.call.getAttr({ path: "/none" }).catch(() => undefined);
    assert.deepEqual(await counters(node), { attempts: 47, errors: 20, operations: 26 });
  } finally {
    await node.stop();
    provider.close();
  }
});

test("every method either counts its operation or is a call apart, and each call is one attempt", async () => {
  const node = await startTestNode();
  try {
    const user = await node.signIn("a@example.com");
    const call = user.call as unknown as Record<string, (request: object) => unknown>;
    for (const { name, localName, methodKind } of FileServer.methods) {
      const isApart = CALLS_APART.has(name);
      if (methodKind !== "unary" || name === "RegisterClient" || name === "EndSession") continue;
      const before = await counters(node);
      const well = await Promise.resolve(call[localName]?.({})).then(
        () => true,
        () => false,
      );
      const after = await counters(node);
      assert.equal(after.operations - before.operations, isApart ? 0 : 1, name);
      assert.equal(after.attempts - before.attempts, isApart && !well ? 0 : 1, name);
      assert.equal(after.errors, before.errors, name);
    }
    const before = await counters(node);
    await user.call.endSession({});
    assert.equal((await counters(node)).attempts - before.attempts, 1);
  } finally {
    await node.stop();
  }
});
