// Tests of the console's polls of a real FileServer: complete answers over one kept connection.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { METRICS_PORT_OFFSET, metricsPortOf } from "#base/metrics-port.ts";
import { listedNode } from "#console/cluster/cluster-state.fixture.ts";
import type { PollOutcome } from "#console/cluster/cluster-state.ts";
import { watchCluster } from "#console/cluster/cluster-watch.ts";
import { startTestNode } from "#fileserver/process/node.fixture.ts";
import { registration } from "#metaserver/directory/store-under-test.fixture.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";

test("a FileServer's own document is read without a complaint, and its users are known (spec 4.4, 2.7)", async (t) => {
  const [port = 0] = await freeGrpcPorts(1);
  const server = await startTestNode({ options: { metricsPort: metricsPortOf(port) } });
  t.after(() => server.stop());
  const alice = await server.signIn("alice@example.com");
  await alice.call.createFile({ path: "/note", data: Buffer.from("0123456789") });
  const clock = new ManualClock();
  const { address } = listedNode("n1", {
    address: `127.0.0.1:${server.node.metricsPort + METRICS_PORT_OFFSET}`,
  });
  const node = {
    ...registration("n1", { address }),
    epoch: 1,
    draining: false,
    live: true,
    lastSeenWallMs: 0,
    rootCount: 1,
  };
  const watch = watchCluster({
    directory: { nodes: () => Promise.resolve([node]) },
    metricsToken: undefined,
    allowNodes: ["127.0.0.0/8"],
    clock,
    log: silentLogger,
  });
  t.after(() => watch.close());
  await watch.start();
  for (let polls = 0; polls < 2; polls++) {
    const polled = new Promise<PollOutcome>((resolve) => watch.clusterState.onPoll(resolve));
    clock.advance(polls === 0 ? 200 : POLL_INTERVAL_MS);
    const { reading, node: state } = await polled;
    assert.equal(state.pollError, undefined);
    assert.deepEqual([state.stale, state.status], [false, "online"]);
    assert.deepEqual(reading?.invalidFields, []);
    assert.equal(reading?.usersWithheld, false);
    assert.equal(reading?.perUserStorage.get("alice@example.com"), 10n);
    assert.equal(reading?.perUserDetail.get("alice@example.com")?.fileCount, 1);
    assert.ok((reading?.diskTotalBytes ?? 0n) > 0n);
  }
});
