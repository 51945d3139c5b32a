// A watched cluster of fake nodes on a clock that the test moves in steps small enough for polls to finish.

import { ManualClock } from "#base/clock.ts";
import { type FakeNode, fakeUsers, startFakeNode } from "#base/fake-nodes.fixture.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { NodeRecord } from "#metaserver/directory/directory.ts";
import { until } from "#testing/until.ts";
import type { PollOutcome } from "./cluster-state.ts";
import { type ClusterWatch, watchCluster } from "./cluster-watch.ts";
import type { Lookup } from "./node-names.ts";

/** What tests opened; each file that uses this closes it after its tests with `closeAll`. */
const closers: (() => Promise<void> | void)[] = [];

/** Closes every node and cluster. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close();
}

/** Registers a function for `closeAll`. */
export function atEnd(close: () => Promise<void> | void): void {
  closers.push(close);
}

/** A cluster of fake nodes, and the clock of their polls. */
export async function watched(
  nodes: readonly Pick<FakeNode, "id" | "address">[],
  options: { metricsToken?: string; allowNodes?: readonly string[]; lookup?: Lookup } = {},
): Promise<
  ClusterWatch & {
    clock: ManualClock;
    records: NodeRecord[];
    outcomes: PollOutcome[];
    directory: { nodes: () => Promise<NodeRecord[]> };
  }
> {
  const clock = new ManualClock();
  const records = nodes.map(recordOf);
  const directory = { nodes: () => Promise.resolve(records) };
  const watch = watchCluster({
    directory,
    metricsToken: options.metricsToken,
    allowNodes: options.allowNodes ?? ["127.0.0.0/8"],
    ...(options.lookup === undefined ? {} : { lookup: options.lookup }),
    clock,
    log: silentLogger,
  });
  closers.push(() => watch.close());
  await watch.start();
  const outcomes: PollOutcome[] = [];
  watch.clusterState.onPoll((outcome) => outcomes.push(outcome));
  return { ...watch, clock, records, outcomes, directory };
}

/** The node as the metadata store lists it. */
export function recordOf(node: Pick<FakeNode, "id" | "address">): NodeRecord {
  return {
    fsId: node.id,
    name: node.id,
    address: node.address,
    softwareVersion: "0.1.0",
    epoch: 1,
    diskTotalBytes: 0n,
    diskFreeBytes: 0n,
    diskReserveBytes: 0n,
    draining: false,
    live: true,
    lastSeenWallMs: 0,
    rootCount: 0,
  };
}

/** A fake node that ends with the tests. */
export async function fake(id: string, users = fakeUsers(3)): Promise<FakeNode> {
  const node = await startFakeNode(id, users);
  closers.push(() => node.close());
  return node;
}

type Watched = Awaited<ReturnType<typeof watched>>;

/** Lets an interval pass in small steps; after each, all polls but hanging ones have time to end. */
export async function round(
  cluster: Pick<Watched, "clock" | "poller">,
  options: { hanging?: string; ms?: number } = {},
): Promise<void> {
  for (let passedMs = 0; passedMs < (options.ms ?? POLL_INTERVAL_MS); passedMs += STEP_MS) {
    cluster.clock.advance(STEP_MS);
    await until(() => cluster.poller.underWay().every((id) => id === options.hanging));
  }
}

const STEP_MS = 100;
