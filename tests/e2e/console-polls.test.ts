// Tests of the console's polls of a real FileServer: complete answers over one kept connection.
import assert from "node:assert/strict";
import { channel } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
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

test("a FileServer's documents are read without a complaint, first whole and then by differences (spec 4.4, 2.7, D25)", async (t) => {
  const [port = 0] = await freeGrpcPorts(1);
  const server = await startTestNode({ options: { metricsPort: metricsPortOf(port) } });
  t.after(() => server.stop());
  const alice = await server.signIn("alice@example.com");
  await alice.call.createFile({ path: "/note", data: Buffer.from("0123456789") });
  const bob = await server.signIn("bob@example.com");
  await bob.call.createFile({ path: "/note", data: Buffer.from("01234") });
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
  const asked: string[] = [];
  const note = (message: unknown): void => {
    const { request } = message as { request: ClientRequest };
    if (request.path.startsWith("/metrics")) asked.push(request.path);
  };
  const requests = channel("http.client.request.start");
  requests.subscribe(note);
  t.after(() => requests.unsubscribe(note));
  const bobs: unknown[] = [];
  for (let polls = 0; polls < 3; polls++) {
    const polled = new Promise<PollOutcome>((resolve) => watch.clusterState.onPoll(resolve));
    clock.advance(polls === 0 ? 200 : POLL_INTERVAL_MS);
    const { reading, node: state } = await polled;
    assert.equal(state.pollError, undefined);
    assert.deepEqual([state.stale, state.status], [false, "online"]);
    assert.deepEqual(reading?.invalidFields, []);
    assert.equal(reading?.usersWithheld, false);
    assert.deepEqual(
      [...(reading?.perUserStorage ?? [])],
      [
        ["alice@example.com", polls === 2 ? 13n : 10n],
        ["bob@example.com", 5n],
      ],
    );
    assert.equal(reading?.perUserDetail.get("alice@example.com")?.fileCount, polls === 2 ? 2 : 1);
    bobs.push(reading?.perUserDetail.get("bob@example.com"));
    assert.ok((reading?.diskTotalBytes ?? 0n) > 0n);
    if (polls === 1) await alice.call.createFile({ path: "/more", data: Buffer.from("abc") });
  }
  const versions = asked.map((path) => /^\/metrics\?since=users-([0-9a-f]{16})-(\d+)$/.exec(path)?.slice(1));
  const [, life] = versions.map((version) => version?.[0]);
  assert.deepEqual(versions, [undefined, [life, "1"], [life, "2"]]);
  assert.equal(bobs[2], bobs[0], "who has not changed is not read again");
});
