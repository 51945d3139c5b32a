// A sign-out drops the browser's cookie once its session has ended, and not before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { startTestDoor } from "#door/http/door.fixture.ts";
import { OwnHosts } from "#door/http/own-hosts.ts";
import { BrowserSignIn } from "./sign-in.ts";

test("a sign-out that fails leaves the cookie, so that a second one ends the session", async (t) => {
  const told: string[] = [];
  let isAway = true;
  const keeper = {
    openSession: () => Promise.reject(new Error("nobody signs in here")),
    async endSession(secret: string) {
      if (isAway) throw new GroveError("STORE_UNAVAILABLE", "no MetaServer answers");
      told.push(secret);
    },
  };
  const hosts = new OwnHosts(undefined, { host: "127.0.0.1", port: 1 }, false);
  const pages = new BrowserSignIn({
    flow: undefined,
    mock: true,
    hosts,
    keeper,
    clock: systemClock,
    log: silentLogger,
  });
  const door = await startTestDoor({ pages });
  t.after(() => door.stop());
  const signOut = (): Promise<Response> =>
    fetch(`http://${door.host}/sign-out`, {
      method: "POST",
      headers: { cookie: "grove-door-session=gds_mine", origin: `http://${door.host}` },
    });
  const failed = await signOut();
  assert.equal(failed.status, 503);
  assert.deepEqual([failed.headers.get("set-cookie"), failed.headers.get("clear-site-data")], [null, null]);
  isAway = false;
  const done = await signOut();
  assert.equal(done.status, 204);
  assert.match(done.headers.get("set-cookie") ?? "", /^grove-door-session=; .*Max-Age=0/u);
  assert.equal(done.headers.get("clear-site-data"), '"cache"');
  assert.deepEqual(told, ["gds_mine"]);
});
