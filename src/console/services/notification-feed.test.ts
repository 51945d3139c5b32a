// What the notification layer hears of nodes that leave the cluster (decision D11).
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { openNotifier, settingsFor, webhookFor } from "#console/alerts/notifier.fixture.ts";
import { listedNode } from "#console/cluster/cluster-state.fixture.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { startService } from "./alert-service.fixture.ts";
import { NODE_FORGOTTEN_MS } from "./gone-nodes.ts";
import { feedNotifications } from "./notification-feed.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A service over n1 and n2 whose notifications go to a port where nobody listens. */
async function startFed(): Promise<
  Awaited<ReturnType<typeof startService>> & { toldOf(nodeId: string): string[] }
> {
  const started = await startService(ends, ["n1", "n2"]);
  const { clock, service, clusterState } = started;
  const folder = scratchFolder("grove-feed-");
  const { notifier } = await openNotifier(folder, settingsFor([webhookFor(1)]), { clock });
  ends.push(() => notifier.close());
  feedNotifications({ notifier, service, cluster: clusterState });
  return {
    ...started,
    toldOf: (nodeId) =>
      notifier
        .view()
        .alerts.filter((alert) => alert.node_id === nodeId && alert.told_at !== undefined)
        .map(({ key }) => key),
  };
}

test("what stands of a removed node ends an hour later, also where its alert was resolved before", async () => {
  const { round, service, clusterState, clock, toldOf } = await startFed();
  for (let i = 0; i < 20; i++) await round({ n1: null, n2: { diskUsagePercent: 90 } });
  assert.deepEqual([toldOf("n1"), toldOf("n2")], [["node_offline:n1"], ["storage_warning:n2"]]);
  await service.resolve(service.idsOf({ ids: [], key: "node_offline:n1" }));
  clusterState.list([listedNode("n2")], ["n1"]);
  await round({ n2: { diskUsagePercent: 90 } });
  clock.advance(NODE_FORGOTTEN_MS - 10_000);
  assert.deepEqual(toldOf("n1"), ["node_offline:n1"]);
  await round({ n2: { diskUsagePercent: 90 } });
  await round({ n2: { diskUsagePercent: 90 } });
  assert.deepEqual([toldOf("n1"), toldOf("n2")], [[], ["storage_warning:n2"]]);
});

test("a notice that waits for a lower value ends with its node", async () => {
  const { round, clusterState, clock, toldOf } = await startFed();
  for (let i = 0; i < 10; i++) await round({ n1: { diskUsagePercent: 90 }, n2: {} });
  for (let i = 0; i < 20; i++) await round({ n1: { diskUsagePercent: 79 }, n2: {} });
  assert.deepEqual(toldOf("n1"), ["storage_warning:n1"]);
  clusterState.list([listedNode("n2")], ["n1"]);
  await round({ n2: {} });
  clock.advance(NODE_FORGOTTEN_MS);
  await round({ n2: {} });
  assert.deepEqual(toldOf("n1"), []);
});
