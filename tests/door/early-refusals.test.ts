// A PUT whose client waits for leave to send its body: it is refused before, whatever the body's size.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import { serveTree } from "#door/webdav/litmus.fixture.ts";
import { startTreeNode } from "./tree.fixture.ts";

const ALICE = "alice@example.com";

/** Asks for leave, and sends a body of that size once it is given; the status and whether it was. */
async function put(
  address: string,
  bytes: number,
  announced: Readonly<Record<string, string | number>> = { "content-length": bytes },
): Promise<{ status: number; hasLeave: boolean }> {
  const headers = { expect: "100-continue", ...announced };
  const sending = request(address, { method: "PUT", headers, agent: false });
  let hasLeave = false;
  sending.once("continue", () => {
    hasLeave = true;
    sending.end(Buffer.alloc(bytes));
  });
  sending.flushHeaders();
  const [answer] = (await once(sending, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  sending.destroy();
  return { status: answer.statusCode ?? 0, hasLeave };
}

test("a body for which there is no room, or that a lock shuts out, is not asked for", async (t) => {
  const { node, tree } = await startTreeNode(t, { env: { SVC_ADMIN_EMAIL: "administrator@example.com" } });
  const alice = tree(ALICE);
  const top = await serveTree(t, alice);
  const leave = { status: 201, hasLeave: true };
  for (const bytes of [10, 65_536, 65_537]) assert.deepEqual(await put(`${top}f${bytes}`, bytes), leave);

  const wish = { scope: "exclusive", isDeep: false, owner: "", seconds: 60 } as const;
  await alice.makeCollection(["locked"], []);
  await alice.lock(["locked"], wish, []);
  await alice.lock(["f10"], wish, []);
  for (const name of ["locked/new", "f10"]) {
    for (const bytes of [10, 65_536, 65_537])
      assert.deepEqual(await put(top + name, bytes), { status: 423, hasLeave: false }, `${name} ${bytes}`);
  }

  const administrator = await node.signIn("administrator@example.com");
  await administrator.call.setQuota({ username: ALICE, quotaBytes: 131_083n });
  for (const bytes of [10, 65_536, 65_537])
    assert.deepEqual(await put(`${top}more`, bytes), { status: 507, hasLeave: false }, `${bytes}`);

  // What macOS expects to send in chunks is asked for as well, and then binds it to nothing.
  const expected = (bytes: number) => ({
    "transfer-encoding": "chunked",
    "x-expected-entity-length": bytes,
  });
  await administrator.call.setQuota({ username: ALICE, quotaBytes: 132_000n });
  assert.deepEqual(await put(`${top}more`, 1_000, expected(1_000)), { status: 507, hasLeave: false });
  await administrator.call.setQuota({ username: ALICE, quotaBytes: 141_083n });
  assert.deepEqual(await put(`${top}more`, 1_000, expected(3)), leave);
});
