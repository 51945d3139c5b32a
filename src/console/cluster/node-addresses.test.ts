// Which nodes are polled, where and when: list, refused addresses, spread over time (spec 4.4, M-04, D19).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { watchCluster } from "./cluster-watch.ts";
import { atEnd, closeAll, fake, recordOf, round, watched } from "./watched-cluster.fixture.ts";

after(closeAll);

test("addresses that are no node's are refused before anything is sent, with the reason (M-04)", async () => {
  const places = {
    metadata: "169.254.169.254:50051",
    loopback: "[::1]:50051",
    any: "0.0.0.0:50051",
    multicast: "224.0.0.1:50051",
    local: "[fe80::1]:50051",
    mapped: "[::ffff:169.254.169.254]:50051",
    low: "10.0.0.1:41000",
    path: "10.0.0.1/x:50051",
    nothing: "",
  };
  const cluster = await watched(Object.entries(places).map(([id, address]) => ({ id, address })));
  await round(cluster);
  for (const { id, pollError, stale } of cluster.clusterState.nodes()) {
    assert.equal(stale, true);
    assert.match(
      pollError ?? "",
      /metadata service|loopback|reserved|multicast|link-local|address in the metadata store/,
      id,
    );
  }
});

test("without -allow_nodes the machine's own loopback is refused, and so is a name that leads there (M-04)", async () => {
  const node = await fake("n1");
  const port = node.address.split(":")[1] ?? "";
  const cluster = await watched([node, { id: "n2", address: `node.example:${port}` }], {
    allowNodes: [],
    lookup: () => Promise.resolve(["127.0.0.1"]),
  });
  await round(cluster);
  await round(cluster);
  for (const { pollError } of cluster.clusterState.nodes())
    assert.match(pollError ?? "", /-allow_nodes 127\.0\.0\.0\/8/);
  assert.deepEqual(node.requests, []);
});

test("a node outside of -allow_nodes is never asked, unknown for 30 s, and says which flag would let it be asked (spec 3.2, M-04)", async () => {
  const cluster = await watched([{ id: "n1", address: "10.9.8.7:50051" }], { allowNodes: ["10.1.0.0/16"] });
  await round(cluster);
  const { status, pollError } = cluster.clusterState.node("n1") ?? {};
  assert.equal(status, "unknown");
  assert.match(
    pollError ?? "",
    /10\.9\.8\.7 is in no block that -allow_nodes names; naming 10\.9\.8\.7 there/,
  );
  await round(cluster, { ms: 31_000 });
  assert.equal(cluster.clusterState.node("n1")?.status, "offline");
});

test("nodes that are added are polled, those that vanish are not (spec 4.4: read again every 10 s)", async () => {
  const [one, two] = [await fake("n1"), await fake("n2")];
  const cluster = await watched([one]);
  await round(cluster);
  cluster.records.splice(0, 1, recordOf(two));
  await round(cluster);
  const requests = one.requests.length;
  await round(cluster);
  await round(cluster);
  assert.equal(cluster.clusterState.node("n2")?.stale, false);
  assert.match(cluster.clusterState.node("n1")?.pollError ?? "", /does not list/);
  assert.equal(one.requests.length, requests);
});

test("a store that does not answer leaves the nodes as they are (D19)", async () => {
  const node = await fake("n1");
  const cluster = await watched([node]);
  await round(cluster);
  cluster.directory.nodes = () => Promise.reject(new Error("down"));
  await round(cluster, { ms: 20_000 });
  assert.equal(cluster.clusterState.node("n1")?.stale, false);
  assert.equal(cluster.poller.counts.answered, 5);
});

test("the polls of many nodes lie evenly apart in the five seconds (M-08: no bursts)", async () => {
  const clock = new ManualClock();
  const startedMs = clock.steadyMs();
  const begins: number[] = [];
  const watch = watchCluster({
    directory: {
      nodes: () =>
        Promise.resolve(
          Array.from({ length: 100 }, (_, index) => recordOf({ id: `n${index}`, address: "bad" })),
        ),
    },
    metricsToken: undefined,
    allowNodes: [],
    clock,
    log: silentLogger,
  });
  atEnd(() => watch.close());
  await watch.start();
  watch.clusterState.onPoll(() => begins.push(clock.steadyMs() - startedMs));
  for (let passedMs = 0; passedMs < 5_200; passedMs += 50) {
    clock.advance(50);
    await Promise.resolve();
  }
  assert.ok(begins.length >= 100);
  for (let fromMs = 0; fromMs < 5_000; fromMs += 500) {
    const within = begins.filter((ms) => ms >= fromMs && ms < fromMs + 500).length;
    assert.ok(within >= 5 && within <= 17, `${within} polls from ${fromMs} ms on`);
  }
});
