// Tests of how long a route is kept (decision T20).
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { ROUTE_TTL_SECONDS } from "#base/limits.ts";
import { ROUTES_KEPT_MAX } from "#client/terminal/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { RouteCache } from "./route-cache.ts";

let folder = "";
let clock = new ManualClock();

beforeEach(() => {
  folder = scratchFolder("grove-routes-");
  clock = new ManualClock();
});

const open = (): RouteCache => new RouteCache(join(folder, "routes.json"), clock);
const ROUTE = { root: "", address: "a:1", fsId: "n1" };

test("a route is used until its time is over, by another process too, and not a moment longer (T20)", async () => {
  await open().put(ROUTE, 60);
  clock.advance(59_999);
  assert.equal((await open().get(""))?.address, "a:1");
  clock.advance(1);
  assert.equal(await open().get(""), undefined);
});

test("no server can make a route last longer than twelve hours, and no clock that is set back (T20)", async () => {
  await open().put(ROUTE, 4_000_000_000);
  clock.advance(ROUTE_TTL_SECONDS * 1_000 - 1);
  assert.notEqual(await open().get(""), undefined);
  clock.advance(1);
  assert.equal(await open().get(""), undefined);
  await open().put(ROUTE, ROUTE_TTL_SECONDS);
  clock.jumpWall(-86_400_000);
  assert.equal(await open().get(""), undefined);
});

test("of more than a thousand routes the oldest goes", async () => {
  const route = { address: "a:1", fs_id: "n1", expires_at_ms: clock.wallMs() + 60_000 };
  const routes = Object.fromEntries(
    Array.from({ length: ROUTES_KEPT_MAX }, (_, at) => [`u${at}@x.y`, route]),
  );
  writeFileSync(join(folder, "routes.json"), JSON.stringify({ routes }), { mode: 0o600 });
  const cache = open();
  await cache.put({ ...ROUTE, root: "one-more@x.y" }, 60);
  assert.equal(await open().get("u0@x.y"), undefined);
  assert.notEqual(await open().get("u1@x.y"), undefined);
  assert.equal((await open().list()).length, ROUTES_KEPT_MAX);
});

test("a root that is called like a part of every object is a root like others", async () => {
  await open().put({ ...ROUTE, root: "__proto__" }, 60);
  assert.equal(await open().get("constructor"), undefined);
  assert.equal((await open().get("__proto__"))?.address, "a:1");
  await open().remove("__proto__");
  assert.deepEqual(await open().list(), []);
});
