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
import { SessionKeeper, type SessionKeeperDeps } from "./session-keeper.ts";

const OWNER = Symbol("owner_symbol");

/** A fake of Node's session, as far as the keeper uses it. */
function session(): { readonly session: Http2Session; readonly handle: Record<string | symbol, unknown> } {
  const emitter = new EventEmitter();
  const handle: Record<string | symbol, unknown> = {
    [OWNER]: emitter,
    ongracefulclosecomplete: () => emitter,
  };
  Reflect.set(emitter, Symbol("kHandle"), handle);
  return { session: emitter as unknown as Http2Session, handle };
}

function closeSome(keeper: SessionKeeper, count: number): void {
  for (let done = 0; done < count; done++) {
    const closing = session();
    keeper.watch(closing.session);
    closing.session.emit("close");
  }
}

function setUp(t: TestContext): {
  readonly keeper: SessionKeeper;
  readonly now: { ms: number; asked: number };
} {
  const now = { ms: 0, asked: 0 };
  const deps: SessionKeeperDeps = { nowMs: () => now.ms, collect: () => void now.asked++ };
  const keeper = new SessionKeeper(deps);
  t.after(() => keeper.close());
  return { keeper, now };
}

test("a closed session is kept over one collection, and gone after the second", (t) => {
  const { keeper } = setUp(t);
  const open = session();
  keeper.watch(open.session);
  assert.equal(keeper.kept, 0);
  closeSome(keeper, 3);
  assert.equal(keeper.kept, 3);
  keeper.collected();
  assert.equal(keeper.kept, 3);
  keeper.collected();
  assert.equal(keeper.kept, 0);
});

test("what is kept no longer leads to the session", (t) => {
  const { keeper } = setUp(t);
  const { session: closing, handle } = session();
  keeper.watch(closing);
  assert.equal(handle[OWNER], closing);
  closing.emit("close");
  assert.deepEqual(handle[OWNER], { destroyed: true });
  assert.equal((handle["ongracefulclosecomplete"] as () => unknown)(), undefined);
});

test("many closed sessions have the heap collected, once, and not soon after it was", (t) => {
  const { keeper, now } = setUp(t);
  now.ms = COLLECTED_AT_MOST_EVERY_MS - 1;
  closeSome(keeper, CLOSED_SESSIONS_MANY);
  assert.equal(now.asked, 0);
  now.ms++;
  closeSome(keeper, 1);
  assert.equal(now.asked, 1);
  closeSome(keeper, CLOSED_SESSIONS_MANY);
  assert.equal(now.asked, 1);
  keeper.collected();
  closeSome(keeper, CLOSED_SESSIONS_MANY);
  assert.equal(now.asked, 1);
  now.ms += COLLECTED_AT_MOST_EVERY_MS;
  closeSome(keeper, 1);
  assert.equal(now.asked, 2);
});

test("as many as may be kept have it collected whenever it was, and none is let go before", (t) => {
  const { keeper, now } = setUp(t);
  closeSome(keeper, CLOSED_SESSIONS_KEPT - 1);
  assert.equal(now.asked, 0);
  closeSome(keeper, 1);
  assert.equal(now.asked, 1);
  closeSome(keeper, 10);
  assert.equal(keeper.kept, CLOSED_SESSIONS_KEPT + 10);
});

test("V8 does collect when it is asked", async (t) => {
  const keeper = new SessionKeeper();
  t.after(() => keeper.close());
  // The second collection releases the first sessions.
  for (
    let closed = CLOSED_SESSIONS_KEPT;
    closed <= 100 * CLOSED_SESSIONS_KEPT;
    closed += CLOSED_SESSIONS_KEPT
  ) {
    closeSome(keeper, CLOSED_SESSIONS_KEPT);
    await delay(20);
    if (keeper.kept < closed) return;
  }
  assert.fail("nothing was let go");
});
