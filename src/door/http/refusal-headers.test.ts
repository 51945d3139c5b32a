// What a refusal tells a client to do, before its sign-in and in the middle of its request alike.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { MemoryTree } from "#door/webdav/memory-tree.fixture.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { basic, startTestDoor } from "./door.fixture.ts";
import { DOOR_FAILURE_WINDOW_MS, DOOR_FAILURES_PER_NETWORK } from "./door-limits.ts";

test("a 401 asks for Basic, and a 429 or 503 says when to come again, from the middle of a request too", async (t) => {
  let refusal: Error = new DavRefusal(401, "your sign-in has ended");
  class RefusingTree extends MemoryTree {
    override look(): Promise<never> {
      return Promise.reject(refusal);
    }
  }
  const door = await startTestDoor({ tree: new RefusingTree() });
  t.after(() => door.stop());
  const told = async (authorization = basic()): Promise<[number, string | null, string | null]> => {
    const headers = { authorization };
    const answer = await fetch(`http://${door.host}/dav/f`, { method: "DELETE", headers });
    await answer.body?.cancel();
    return [answer.status, answer.headers.get("www-authenticate"), answer.headers.get("retry-after")];
  };
  const challenge = 'Basic realm="Grove", charset="UTF-8"';
  assert.deepEqual(await told(basic({ username: "mallory", password: "wrong" })), [401, challenge, null]);
  assert.deepEqual(await told(), [401, challenge, null]);
  refusal = new GroveError("SESSION_EXPIRED", "over");
  assert.deepEqual(await told(), [401, challenge, null]);
  refusal = new GroveError("TOO_MANY_UPLOADS", "too many");
  assert.deepEqual(await told(), [429, null, "5"]);
  refusal = new GroveError("RATE_LIMITED", "wait", { metadata: { retry_after_ms: "90500" } });
  assert.deepEqual(await told(), [429, null, "91"]);
  refusal = new GroveError("STARTING", "not yet");
  assert.deepEqual(await told(), [503, null, "5"]);
  refusal = new GroveError("NOT_SHARED", "no");
  assert.deepEqual(await told(), [403, null, null]);
  const guesses = Array.from({ length: DOOR_FAILURES_PER_NETWORK }, (_, guess) =>
    told(basic({ username: "mallory", password: `wrong ${guess}` })),
  );
  await Promise.all(guesses);
  const [status, , seconds] = await told(basic({ username: "mallory", password: "one more" }));
  assert.equal(status, 429);
  assert.ok(Math.abs(Number(seconds) - DOOR_FAILURE_WINDOW_MS / 1_000) < 60, `${seconds}`);
});
