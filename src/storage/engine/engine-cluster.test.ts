// Tests that one cluster alone uses an engine: another one's servers would serve its roots to people of their own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { systemFraction } from "#base/random.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { enginePlace, openEngine } from "./engine.fixture.ts";
import { checkEngine } from "./engine-check.ts";

const places = enginePlaces();
const { skip } = places;
const OWNER = "ada@example.com";

const isMismatch = (error: unknown): boolean =>
  isGroveError(error, "CLUSTER_MISMATCH") && /belongs to the cluster one/.test(error.message);

test("a node of another cluster neither opens an engine nor takes its roots", {
  skip,
  timeout: 120_000,
}, async (t) => {
  const place = await enginePlace(places);
  const first = await openEngine(t, place, { clusterId: "" });
  await first.joined("one");
  await first.storage.createRoot({ owner: OWNER, rootId: "root" });
  await assert.rejects(openEngine(t, place, { clusterId: "two" }), isMismatch);

  // Before its first registration nobody knows of which cluster a node is.
  const stranger = await openEngine(t, place, { clusterId: "" });
  const next = await openEngine(t, place, { clusterId: "" });
  await first.storage.close();
  await assert.rejects(stranger.joined("two"), isMismatch);
  assert.match(stranger.storage.failure ?? "", /belongs to the cluster one/);
  await next.joined("one");
  await until(() => next.readings().roots === 1);
  assert.equal(stranger.readings().takenOverTotal, 0);
  await next.storage.close();

  // A restored copy may be for another cluster.
  const bucket = storeSettings(place.storeUrl);
  const check = { database: [place.database], bucket, clock: systemClock, fraction: systemFraction };
  await checkEngine({ ...check, isRestored: true });
  const copy = await openEngine(t, place, { clusterId: "two" });
  await until(() => copy.readings().roots === 1);
});

test("a process that knows no cluster opens, sweeps and checks the engine of any, and binds it to none", {
  skip,
  timeout: 120_000,
}, async (t) => {
  const place = await enginePlace(places);
  const bare = await openEngine(t, place);
  await bare.storage.createRoot({ owner: OWNER, rootId: "root" });
  await bare.storage.close();
  const first = await openEngine(t, place, { clusterId: "one" });
  await until(() => first.readings().roots === 1);
  await first.storage.close();

  const sweeper = await openEngine(t, place);
  await until(() => sweeper.readings().roots === 1);
  assert.deepEqual(await sweeper.passes.run(), { removed: 0, kept: 0 });
  const bucket = storeSettings(place.storeUrl);
  const check = { database: [place.database], bucket, clock: systemClock, fraction: systemFraction };
  assert.equal((await checkEngine(check)).differenceCount, 0);
  await sweeper.storage.close();
  await assert.rejects(openEngine(t, place, { clusterId: "two" }), isMismatch);
});
