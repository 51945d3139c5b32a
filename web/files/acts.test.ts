// Acts on several files: where one fails on the way, what went before is told, and can be taken back.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { FileEntry } from "#wire/webapi/files.ts";
import { type ActsOf, copyAll, moveAll, trashAll } from "./acts.ts";
import type { Message } from "./toast.tsx";

const entries = ["a", "b", "c"].map((name) => ({ name, kind: "file" }) as FileEntry);

interface Seen {
  readonly acts: ActsOf;
  readonly said: Message[];
  readonly asked: string[];
}

/** A door that refuses what is about "c". */
function doorFor(t: TestContext): Seen {
  const said: Message[] = [];
  const asked: string[] = [];
  t.mock.method(globalThis, "fetch", async (path: string, init: RequestInit) => {
    const body = JSON.parse(String(init.body)) as { path?: string; target?: string; id?: string };
    asked.push(`${path} ${body.path ?? body.id} ${body.target ?? ""}`.trim());
    if (body.path?.endsWith("/c") === true)
      return new Response(JSON.stringify({ error: "QUOTA_EXCEEDED", message: "There is no space left." }), {
        status: 507,
      });
    return new Response(JSON.stringify({ id: `id of ${body.path}`, path: body.target ?? "" }));
  });
  const acts: ActsOf = {
    here: { root: "", path: "/from" },
    say: (message) => {
      if (message !== undefined) said.push(message);
    },
    refresh: () => undefined,
  };
  return { acts, said, asked };
}

test("a move that breaks off says what has moved, and takes that back", async (t) => {
  const { acts, said, asked } = doorFor(t);
  await moveAll(acts, entries, "/to");
  assert.equal(said[0]?.text, "There is no space left. Before that: 2 items moved to to.");
  assert.equal(said[0]?.isProblem, true);
  asked.length = 0;
  await said[0]?.undo?.();
  assert.deepEqual(asked, ["/api/move /to/a /from/a", "/api/move /to/b /from/b"]);
});

test("a copy that breaks off says what was copied, and takes that back", async (t) => {
  const { acts, said, asked } = doorFor(t);
  await copyAll(acts, entries, "/to");
  assert.equal(said[0]?.text, "There is no space left. Before that: 2 items copied.");
  asked.length = 0;
  await said[0]?.undo?.();
  assert.deepEqual(asked, ["/api/trash /to/a", "/api/trash /to/b"]);
});

test("a copy to where nothing may be deleted offers no way back", async (t) => {
  const { acts, said } = doorFor(t);
  t.mock.method(globalThis, "fetch", async () => new Response(JSON.stringify({ path: "/to/a", kept: true })));
  await copyAll(acts, entries.slice(0, 1), "/to");
  assert.deepEqual(said, [{ text: "Copied a." }]);
});

test("of the first one nothing was done, and there is nothing to take back", async (t) => {
  const { acts, said } = doorFor(t);
  await moveAll(acts, entries.slice(2), "/to");
  await copyAll(acts, entries.slice(2), "/to");
  await trashAll(acts, entries.slice(2));
  assert.deepEqual(
    said.map(({ text, undo }) => [text, undo]),
    Array.from({ length: 3 }, () => ["There is no space left.", undefined]),
  );
  await trashAll(acts, entries);
  assert.equal(said[3]?.text, "There is no space left. Before that: 2 items moved to the trash.");
  assert.ok(said[3]?.undo !== undefined);
});
