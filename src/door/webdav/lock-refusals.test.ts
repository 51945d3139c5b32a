// Refusals that have to do with locks, over a tree in memory: their statuses and what they name (RFC 4918).
import assert from "node:assert/strict";
import { test } from "node:test";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";

const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

test("a refusal names the lock that stands in the way, and a LOCK below nothing is 409", async (t) => {
  const top = await serveTree(t, new MemoryTree());
  const ask = async (method: string, name: string, headers: Record<string, string> = {}, body?: string) => {
    const answer = await fetch(top + name, { method, headers, ...(body === undefined ? {} : { body }) });
    return { status: answer.status, token: answer.headers.get("lock-token"), text: await answer.text() };
  };
  await ask("MKCOL", "d");
  await ask("PUT", "d/f", {}, "f");
  await ask("PUT", "o", {}, "o");
  const { token } = await ask("LOCK", "d", {}, LOCK);
  const href = "<D:href>/dav/d</D:href>";
  const submitted = `<D:lock-token-submitted>${href}</D:lock-token-submitted>`;
  for (const refused of [
    await ask("PUT", "d/f", {}, "x"),
    await ask("PUT", "d/new", {}, "x"),
    await ask("DELETE", "d/f"),
    await ask("COPY", "o", { destination: `${top}d/o` }),
  ]) {
    assert.equal(refused.status, 423);
    assert.ok(refused.text.includes(submitted), refused.text);
  }
  const conflict = await ask("LOCK", "d/f", { depth: "0" }, LOCK);
  assert.equal(conflict.status, 423);
  assert.ok(conflict.text.includes(`<D:no-conflicting-lock>${href}</D:no-conflicting-lock>`), conflict.text);
  assert.equal((await ask("PUT", "d/f", { if: `(${token})` }, "x")).status, 204);

  assert.equal((await ask("LOCK", "none/f", {}, LOCK)).status, 409);
  assert.equal((await ask("HEAD", "none")).status, 404);
});

test("UNLOCK takes a token with brackets and without, and no other", async (t) => {
  const top = await serveTree(t, new MemoryTree());
  await fetch(`${top}f`, { method: "PUT", body: "f" });
  for (const [before, after] of [
    ["<", ">"],
    ["", ""],
  ]) {
    const locked = await fetch(`${top}f`, { method: "LOCK", body: LOCK });
    const token = (locked.headers.get("lock-token") ?? "").slice(1, -1);
    for (const [sent, status] of [
      [`${token}x`, 409],
      [`<${token}`, 400],
      [`${before}${token}${after}`, 204],
    ] as const) {
      const answer = await fetch(`${top}f`, { method: "UNLOCK", headers: { "lock-token": sent } });
      assert.equal(answer.status, status, sent);
    }
  }
});
