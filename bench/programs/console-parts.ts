// The console's list of users and its hub behind its own application, over a simulated reporting cluster.

import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { serveTasks } from "#bench/tasks.ts";
import { makeApp } from "#console/app/app.ts";
import { listedNode, nodeReading } from "#console/cluster/cluster-state.fixture.ts";
import { ClusterStateStore } from "#console/cluster/cluster-state-store.ts";
import { HomeNodes } from "#console/cluster/home-nodes.ts";
import { UserList } from "#console/cluster/user-list.ts";
import { Hub } from "#console/live/hub.ts";
import { OperatorSessions } from "#console/operators/operator-sessions.ts";
import { liveRoutes } from "#console/routes/live-routes.ts";
import { userRoutes } from "#console/routes/user-routes.ts";
import { QuotaService } from "#console/services/quota-service.ts";
import { TrustedProxies } from "#os/client-address.ts";

/** The size of the cluster. */
interface Size {
  readonly nodes: number;
  readonly usersPerNode: number;
}

const clock = systemClock;
const BOUNDLESS = { perSecond: 1e9, burst: 1e9 };
const delay = monitorEventLoopDelay({ resolution: 1 });
const ends: (() => Promise<unknown> | void)[] = [];
let hub: Hub | undefined;

async function serve(size: Size): Promise<{ port: number; token: string }> {
  const sessions = new OperatorSessions({ clock, random: systemRandom });
  const rate = { ...BOUNDLESS, keys: 1_000 };
  const app = await makeApp({
    sessions,
    clock,
    proxies: new TrustedProxies(),
    allowQueryToken: true,
    rates: { visitor: rate, operator: rate },
    onQueryToken: () => undefined,
    log: silentLogger,
    tls: undefined,
  });
  const book = reportingCluster(size);
  const directory = { findRoot: () => Promise.resolve(undefined), listRoots: () => Promise.resolve([]) };
  const homes = new HomeNodes({ clock, log: silentLogger, directory });
  const decided = { locked: new Set<string>(), version: 0, refresh: () => Promise.resolve() };
  const users = new UserList({ clock, cluster: book, homes, decided, fullInDays: () => undefined });
  const quotas = new QuotaService({
    clock,
    log: silentLogger,
    cluster: book,
    directory,
    users,
    setQuotaOnNode: () => Promise.reject(new GroveError("NOT_IMPLEMENTED", "no quota is set here")),
    audit: () => undefined,
    flushAudit: () => Promise.resolve(),
  });
  userRoutes(app, { users, quotas });
  const snapshot = Buffer.from(JSON.stringify(snapshotOf(size.nodes)));
  hub = new Hub({
    clock,
    log: silentLogger,
    isSessionLive: () => true,
    snapshot: () => snapshot,
    limits: { sockets: 10_000, socketsPerAddress: 10_000 },
  });
  liveRoutes(app, { hub, redeemTicket: () => undefined });
  await app.listen({ host: "127.0.0.1", port: 0 });
  ends.push(
    () => book.close(),
    () => hub?.close(),
    () => app.close(),
  );
  const { token } = sessions.create("0".repeat(64));
  return { port: (app.server.address() as AddressInfo).port, token };
}

/** Every node reports each five seconds, and each time a twentieth of its users has written something. */
function reportingCluster({ nodes, usersPerNode }: Size): ClusterStateStore {
  const book = new ClusterStateStore({ clock });
  const ids = Array.from({ length: nodes }, (_, index) => `node-${index}`);
  book.list(ids.map((id) => listedNode(id)));
  let turn = 0;
  const report = (id: string, index: number): void => {
    const names = Array.from({ length: usersPerNode }, (_, user) => `user-${index}-${user}@example.com`);
    const used = (user: number): bigint =>
      BigInt(((user * 7_919 + (user % 20 === turn % 20 ? turn : 0)) % 16_000) * 1_048_576);
    book.answered(
      id,
      nodeReading({
        perUserStorage: new Map(names.map((name, user) => [name, used(user)])),
        perUserQuota: new Map(names.map((name) => [name, 17_179_869_184n])),
      }),
    );
  };
  for (const [index, id] of ids.entries()) report(id, index);
  const timer = setInterval(() => {
    turn += 1;
    for (const [index, id] of ids.entries())
      setTimeout(report, (index * POLL_INTERVAL_MS) / nodes, id, index);
  }, POLL_INTERVAL_MS);
  timer.unref();
  return book;
}

/** Visitors' snapshot of a cluster of this size, about as long as a real one. */
function snapshotOf(nodes: number): object {
  const { perUserStorage: _s, perUserQuota: _q, perUserDetail: _d, ...rest } = nodeReading();
  const fields = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]),
  );
  return {
    nodes: Array.from({ length: nodes }, (_, index) => ({
      id: `node-${index}`,
      name: `node-${index}`,
      ...fields,
    })),
    cluster: {
      nodes_total: nodes,
      nodes_online: nodes,
      nodes_unknown: 0,
      disk_total_bytes: 0,
      disk_used_bytes: 0,
    },
  };
}

serveTasks(
  {
    serve: (input) => serve(input as unknown as Size),
    // Answers the time of sending, on a clock that all processes of the machine share.
    broadcast: () => {
      const atMs = performance.timeOrigin + performance.now();
      hub?.broadcastSnapshot();
      return atMs;
    },
    watchDelay: () => {
      delay.reset();
      return delay.enable();
    },
    // The 99th percentile of the event loop's delay since `watchDelay`, in milliseconds.
    delayP99: () => {
      delay.disable();
      return delay.percentile(99) / 1e6;
    },
  },
  async () => {
    for (const end of ends.toReversed()) await end();
  },
);
