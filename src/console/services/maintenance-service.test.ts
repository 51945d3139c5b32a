// Tests the messages about a maintenance to the metadata store: begin, end, restarts and a slow store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { MaintenanceStore } from "#console/alerts/maintenance-store.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { MaintenanceService, type PausePlacement, PLACEMENT_PAUSE_RETRY_MS } from "./maintenance-service.ts";

const ACTOR = { id: "0123abcd", requestId: "r" };
const REQUEST = { duration: "300d", comment: "a new fan" };

async function openService(
  folder: string,
  clock: ManualClock,
  pausePlacement: PausePlacement,
): Promise<{ service: MaintenanceService; maintenanceStore: MaintenanceStore }> {
  const maintenanceStore = await MaintenanceStore.open({ dataFolder: folder, clock, log: silentLogger });
  const service = new MaintenanceService({
    maintenanceStore,
    pausePlacement,
    audit: () => undefined,
    flushAudit: () => Promise.resolve(),
    clock,
    log: silentLogger,
  });
  return { service, maintenanceStore };
}

test("an end that the store could not be told is told by the next console", async () => {
  const folder = scratchFolder("grove-maintenance-");
  const clock = new ManualClock();
  const away = (): Promise<void> => Promise.reject(new Error("the store is away"));
  const first = await openService(folder, clock, away);
  await first.service.begin("n1", REQUEST, ACTOR);
  await first.service.end("n1", ACTOR);
  await first.service.close();
  assert.deepEqual(first.maintenanceStore.untold(), ["n1"]);

  const told: unknown[] = [];
  const heard = Promise.withResolvers<void>();
  const second = await openService(folder, clock, (...what) => {
    told.push(what);
    heard.resolve();
    return Promise.resolve();
  });
  await heard.promise;
  assert.deepEqual(told, [["n1", undefined]]);
  // Closing the service saves the answer.
  await second.service.close();
  assert.deepEqual((await openService(folder, clock, away)).maintenanceStore.untold(), []);
});

test("a store that answers slowly is asked once for a node, and closing waits for that alone", async () => {
  const clock = new ManualClock();
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const { service } = await openService(scratchFolder("grove-maintenance-"), clock, (fsId) => {
    asked.push(fsId);
    return new Promise((resolve) => answers.push(resolve));
  });
  const begun = ["n1", "n2"].map((id) => service.begin(id, REQUEST, ACTOR));
  while (asked.length < 1) await new Promise((resolve) => setImmediate(resolve));
  for (let look = 0; look < 50; look++) clock.advance(PLACEMENT_PAUSE_RETRY_MS);
  answers.shift()?.();
  while (asked.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const closed = service.close();
  answers.shift()?.();
  await Promise.all([...begun, closed]);
  assert.deepEqual(asked, ["n1", "n2"]);
});
