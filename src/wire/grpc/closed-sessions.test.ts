// Closed sessions that are kept, and requests for a collection.
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Http2Session } from "node:http2";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  CLOSED_SESSIONS_KEPT,
  CLOSED_SESSIONS_MANY,
  COLLECTED_AT_MOST_EVERY_MS,
} from "#wire/framing/limits.ts";
import { ClosedSessions, type ClosedSessionsDeps } from "./closed-sessions.ts";

const OWNER = Symbol("owner_symbol");

/** A fake of Node's session, as far as the class uses it. */
function session(): { readonly session: Http2Session; readonly handle: Record<string | symbol, unknown> } {
  const emitter = new EventEmitter();
  const handle: Record<string | symbol, unknown> = {
    [OWNER]: emitter,
    ongracefulclosecomplete: () => emitter,
  };
  Reflect.set(emitter, Symbol("kHandle"), handle);
  return { session: emitter as unknown as Http2Session, handle };
}

function closeSome(closedSessions: ClosedSessions, count: number): void {
  for (let done = 0; done < count; done++) {
    const closing = session();
    closedSessions.watch(closing.session);
    closing.session.emit("close");
  }
}

function setUp(t: TestContext): {
  readonly closedSessions: ClosedSessions;
  readonly now: { ms: number; asked: number };
} {
  const now = { ms: 0, asked: 0 };
  const deps: ClosedSessionsDeps = { nowMs: () => now.ms, collect: () => void now.asked++ };
  const closedSessions = new ClosedSessions(deps);
  t.after(() => closedSessions.close());
  return { closedSessions, now };
}

test("a closed session is kept over one collection, and gone after the second", (t) => {
  const { closedSessions } = setUp(t);
  const open = session();
  closedSessions.watch(open.session);
  assert.equal(closedSessions.kept, 0);
  closeSome(closedSessions, 3);
  assert.equal(closedSessions.kept, 3);
  closedSessions.collected();
  assert.equal(closedSessions.kept, 3);
  closedSessions.collected();
  assert.equal(closedSessions.kept, 0);
});

test("what is kept no longer leads to the session", (t) => {
  const { closedSessions } = setUp(t);
  const { session: closing, handle } = session();
  closedSessions.watch(closing);
  assert.equal(handle[OWNER], closing);
  closing.emit("close");
  assert.deepEqual(handle[OWNER], { destroyed: true });
  assert.equal((handle["ongracefulclosecomplete"] as () => unknown)(), undefined);
});

test("many closed sessions have the heap collected, once, and not soon after it was", (t) => {
  const { closedSessions, now } = setUp(t);
  now.ms = COLLECTED_AT_MOST_EVERY_MS - 1;
  closeSome(closedSessions, CLOSED_SESSIONS_MANY);
  assert.equal(now.asked, 0);
  now.ms++;
  closeSome(closedSessions, 1);
  assert.equal(now.asked, 1);
  closeSome(closedSessions, CLOSED_SESSIONS_MANY);
  assert.equal(now.asked, 1);
  closedSessions.collected();
  closeSome(closedSessions, CLOSED_SESSIONS_MANY);
  assert.equal(now.asked, 1);
  now.ms += COLLECTED_AT_MOST_EVERY_MS;
  closeSome(closedSessions, 1);
  assert.equal(now.asked, 2);
});

test("as many as may be kept have it collected whenever it was, and none is let go before", (t) => {
  const { closedSessions, now } = setUp(t);
  closeSome(closedSessions, CLOSED_SESSIONS_KEPT - 1);
  assert.equal(now.asked, 0);
  closeSome(closedSessions, 1);
  assert.equal(now.asked, 1);
  closeSome(closedSessions, 10);
  assert.equal(closedSessions.kept, CLOSED_SESSIONS_KEPT + 10);
});

test("V8 does collect when it is asked", async (t) => {
  const closedSessions = new ClosedSessions();
  t.after(() => closedSessions.close());
  // The second collection releases the first sessions.
  for (
    let closed = CLOSED_SESSIONS_KEPT;
    closed <= 100 * CLOSED_SESSIONS_KEPT;
    closed += CLOSED_SESSIONS_KEPT
  ) {
    closeSome(closedSessions, CLOSED_SESSIONS_KEPT);
    await delay(20);
    if (closedSessions.kept < closed) return;
  }
  assert.fail("nothing was let go");
});
