// Tests history, performance and export for visitors and operators (spec 2.8, 4.1, D9, W-11, M-05).
import assert from "node:assert/strict";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger } from "#base/log.ts";
import { listedNode, nodeReading } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading } from "#console/cluster/cluster-state.ts";
import { ClusterStateStore } from "#console/cluster/cluster-state-store.ts";
import { feedHistory } from "#console/cluster/history-feed.ts";
import { History } from "#console/history/history.ts";
import { CSV_COLUMNS } from "#console/history/performance-csv.ts";
import {
  HISTORY_EXPORT_TIMEOUT_MS,
  HISTORY_EXPORTS_PER_ADDRESS,
  historyRoutes,
} from "#console/routes/history-routes.ts";
import { TrustedProxies } from "#os/client-address.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { HistoryReply, PerformanceReply } from "#wire/webapi/performance.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";

let folder: string;
let console: AppUnderTest;
let clusterState: ClusterStateStore;
let history: History;

beforeEach(async () => {
  folder = scratchFolder("grove-history-routes-");
  console = await startApp(
    async (app, { clock }) => {
      clusterState = new ClusterStateStore({ clock });
      history = await History.open({ folder, clock, log: silentLogger });
      feedHistory(clusterState, history, { current: new Map(), refresh: () => Promise.resolve() });
      historyRoutes(app, { cluster: clusterState, history, clock });
    },
    { proxies: new TrustedProxies(["127.0.0.1"]) },
  );
});

afterEach(async () => {
  await console.close();
  clusterState.close();
  await history.close();
});

/** Polls all nodes once; those without a reading do not answer. */
function poll(readings: Readonly<Record<string, Partial<NodeReading> | undefined>>): void {
  console.clock.advance(5_000);
  clusterState.list(Object.keys(readings).map((id) => listedNode(id, { name: `name of ${id}` })));
  for (const [id, reading] of Object.entries(readings)) {
    if (reading === undefined) clusterState.failed(id, "no answer");
    else clusterState.answered(id, nodeReading(reading), []);
  }
}

const counted = (polls: number, more: Partial<NodeReading> = {}): Partial<NodeReading> => ({
  bytesWrittenTotal: BigInt(polls) * 50_000_000n,
  bytesReadTotal: BigInt(polls) * 10_000_000n,
  writeOpsTotal: BigInt(polls) * 50n,
  readOpsTotal: BigInt(polls) * 150n,
  errorsTotal: BigInt(polls) * 4n,
  ...more,
});

async function historyOf(path: string): Promise<HistoryReply> {
  const answer = await console.ask(`/api/history/${path}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json as HistoryReply;
}

describe("GET /api/history/{fsID}", () => {
  it("gives a node's rows with their gaps, the same to visitors and operators", async () => {
    for (let polls = 0; polls < 3; polls++) poll({ a: counted(polls) });
    poll({ a: undefined });
    poll({ a: counted(4) });
    const reply = await historyOf("a");
    assert.equal(reply.node_id, "a");
    const column = (name: HistoryReply["columns"][number]): unknown[] =>
      reply.points.map((point) => point[reply.columns.indexOf(name)]);
    assert.deepEqual(column("write_mbps"), [null, 10, 10, null, 10]);
    assert.deepEqual(column("read_iops"), [null, 30, 30, null, 30]);
    assert.deepEqual(column("error_rate_pct"), [null, 2, 2, null, 2]);
    assert.deepEqual(column("disk_usage_percent"), [40, 40, 40, null, 40]);
    assert.equal(
      (await console.askAsOperator("/api/history/a")).text,
      (await console.ask("/api/history/a")).text,
    );
  });

  it("of the cluster sums rates and shows the worst node's percentiles", async () => {
    for (let polls = 0; polls < 2; polls++) {
      poll({ a: counted(polls), b: counted(polls * 2, { opLatencyWriteMsP99: 250 }) });
    }
    const reply = await historyOf("cluster");
    const last = Object.fromEntries(reply.columns.map((name, index) => [name, reply.points.at(-1)?.[index]]));
    assert.equal(last["write_mbps"], 30);
    assert.equal(last["p99_write_ms"], 250);
    assert.equal(last["error_rate_pct"], 2);
  });

  it("from, to and step choose; a node of which nothing is known yet has no points", async () => {
    for (let polls = 0; polls < 8; polls++) poll({ a: counted(polls), silent: undefined });
    const { points, to } = await historyOf("a");
    const [, second, third] = points.map(([ts]) => ts);
    assert.deepEqual((await historyOf(`a?from=${second}&to=${third}`)).points, points.slice(1, 3));
    const stepped = await historyOf("a?step=3600");
    assert.ok(stepped.points.length <= 2);
    assert.equal(stepped.interval_seconds, 3_600);
    assert.deepEqual((await historyOf(`a?from=${to + 1}`)).points, []);
    assert.deepEqual((await historyOf("silent")).points, []);
  });

  it("an unknown node is 404, and a wrong query 422 (D2)", async () => {
    poll({ a: counted(0) });
    for (const id of ["b", "A", "..%2F..", "%00", "__proto__", "a".repeat(900)]) {
      const { status, problem } = await console.ask(`/api/history/${id}`);
      assert.deepEqual([status, problem?.code], [404, "NO_SUCH_NODE"], id);
    }
    const queries = [
      "from=x",
      "from=-1",
      "to=1.5",
      "from=1e9",
      "from=",
      "step=0",
      "step=4",
      "step=7",
      "step=3605",
      "step=1e2",
    ];
    for (const query of [
      ...queries,
      "from=10&to=5",
      "from=1&from=2",
      "form=5",
      "from=18446744073709551616",
    ]) {
      const { status, problem } = await console.ask(`/api/history/a?${query}`);
      assert.deepEqual([status, problem?.code], [422, "QUERY_INVALID"], query);
    }
  });
});

describe("GET /api/performance", () => {
  it("gives the rates of the last minute, of the cluster and of each node", async () => {
    for (let polls = 0; polls < 4; polls++) {
      poll({ a: counted(polls), b: counted(polls, { errorsTotal: BigInt(polls) * 20n }) });
    }
    const reply = (await console.ask("/api/performance")).json as PerformanceReply;
    const { nodes, generated_at: _now, ...cluster } = reply;
    assert.deepEqual(cluster, {
      cluster_write_mbps: 20,
      cluster_read_mbps: 4,
      cluster_write_iops: 20,
      cluster_read_iops: 60,
      cluster_error_rate_pct: 6,
      window_seconds: 60,
    });
    assert.deepEqual(
      nodes.map((node) => node.error_rate_pct),
      [2, 10],
    );
    assert.equal(nodes[0]?.node_name, "name of a");
    assert.equal(nodes[0]?.op_latency_read_ms_p99, 7);
  });

  it("without a node, and with one that is offline, sums are 0 and its figures unknown", async () => {
    const empty = (await console.ask("/api/performance")).json as PerformanceReply;
    assert.deepEqual([empty.cluster_write_mbps, empty.nodes], [0, []]);
    for (let polls = 0; polls < 3; polls++) poll({ a: counted(polls) });
    for (let polls = 0; polls < 8; polls++) poll({ a: undefined });
    const reply = (await console.ask("/api/performance")).json as PerformanceReply;
    assert.equal(reply.nodes[0]?.status, "offline");
    assert.equal(reply.nodes[0]?.write_mbps, null);
    assert.equal(reply.nodes[0]?.active_connections, null);
    assert.equal(reply.cluster_write_mbps, 0);
  });

  it("a node that has not answered yet is unknown and not online, here and in the export (spec 3.2)", async () => {
    poll({ a: counted(0), quiet: undefined });
    const reply = (await console.ask("/api/performance")).json as PerformanceReply;
    assert.deepEqual(
      reply.nodes.map(({ node_id, status, unknown }) => [node_id, status, unknown]),
      [
        ["a", "online", undefined],
        ["quiet", "offline", true],
      ],
    );
    assert.doesNotMatch((await console.ask("/api/performance/export")).text, /,quiet,/);
  });
});

describe("GET /api/performance/export", () => {
  it("is a CSV by its name and type, of all nodes that are not offline, the oldest row first", async () => {
    poll({ a: counted(0), b: counted(0), gone: counted(0) });
    for (let polls = 1; polls < 9; polls++)
      poll({ a: counted(polls), b: counted(polls, { diskUsagePercent: 92 }), gone: undefined });
    const { status, headers, text } = await console.ask("/api/performance/export");
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/csv; charset=utf-8");
    assert.match(
      headers["content-disposition"] ?? "",
      /^attachment; filename="svc_performance_\d{8}T\d{6}Z\.csv"$/,
    );
    const rows = text.split("\r\n").map((row) => row.split(","));
    assert.deepEqual(rows[0], [...CSV_COLUMNS]);
    assert.deepEqual(rows.at(-1), [""]);
    assert.equal(rows.length, 1 + 18 + 1);
    assert.deepEqual(rows.at(-3)?.slice(2, 8), ["a", "name of a", "online", "10", "2", "10"]);
    assert.deepEqual(rows.at(-2)?.slice(2, 5), ["b", "name of b", "degraded"]);
    const times = rows.slice(1, -1).map((row) => Number(row[1]));
    assert.deepEqual(
      times,
      times.toSorted((one, other) => one - other),
    );
  });

  it("of one node also when it is offline, and of an unknown one 404 and no empty file", async () => {
    poll({ a: counted(0) });
    for (let polls = 0; polls < 8; polls++) poll({ a: undefined });
    assert.equal((await console.ask("/api/performance/export")).text.split("\r\n").length, 2);
    assert.equal((await console.ask("/api/performance/export?node_id=a")).text.split("\r\n").length, 3);
    for (const id of ["b", "cluster", "=1"]) {
      const { status, problem } = await console.ask(`/api/performance/export?node_id=${id}`);
      assert.deepEqual([status, problem?.code], [404, "NO_SUCH_NODE"]);
    }
    for (const query of ["node_id=", "node_id=a&node_id=a", "node=a"]) {
      assert.equal((await console.ask(`/api/performance/export?${query}`)).problem?.code, "QUERY_INVALID");
    }
  });

  it("of one address only few at once, and not for ever: others are not shut out by slow readers", async () => {
    const names = Array.from({ length: 80 }, (_, index) => `node-${index}`);
    for (let polls = 0; polls < 720; polls++)
      poll(Object.fromEntries(names.map((id) => [id, counted(polls)])));
    const slow = Array.from({ length: HISTORY_EXPORTS_PER_ADDRESS }, (_, index) =>
      startAndPause(`2001:db8::${index}`),
    );
    await Promise.all(slow.map(({ begun }) => begun));
    // One IPv6 network counts as one address.
    const refused = await console.ask("/api/performance/export", from("2001:db8::9"));
    assert.deepEqual([refused.status, refused.problem?.code], [429, "RATE_LIMITED"]);
    assert.equal(refused.headers["retry-after"], "5");
    const other = await console.ask("/api/performance/export?node_id=node-1", from("2001:db8:1::9"));
    assert.equal(other.status, 200);
    console.clock.advance(HISTORY_EXPORT_TIMEOUT_MS);
    for (const { isComplete } of slow) assert.equal(await isComplete(), false);
    assert.equal((await console.ask("/api/performance/export?node_id=node-1")).status, 200);
  });
});

/** Sets the client's address as a trusted proxy does. */
const from = (address: string): { headers: Record<string, string> } => ({
  headers: { "x-forwarded-for": address },
});

interface SlowReader {
  /** Resolves when the answer has begun; its rest stays unread. */
  readonly begun: Promise<void>;
  /** Reads the rest; false when it is truncated. */
  isComplete(): Promise<boolean>;
}

function startAndPause(address: string): SlowReader {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let rest: IncomingMessage | undefined;
  const asked = { agent: false, ...from(address) };
  const request = httpRequest(`${console.url}/api/performance/export`, asked, (response) => {
    response.pause();
    response.on("error", () => undefined);
    response.on("close", () => ended.resolve());
    rest = response;
    begun.resolve();
  });
  request.on("error", begun.reject);
  request.end();
  return {
    begun: begun.promise,
    async isComplete() {
      rest?.resume();
      await ended.promise;
      return rest?.complete === true;
    },
  };
}

describe("a time before the last hour", () => {
  it("is answered by minutes with since when they are kept, as JSON and as CSV, also of the cluster; else it says that nothing is kept", async () => {
    for (let polls = 0; polls < 2_000; polls++) {
      poll({ a: counted(polls) });
      if (polls % 60 === 59) await history.saveLong();
    }
    const now = Math.floor(console.clock.wallMs() / 1_000);
    const from = now - 9_000;
    for (const id of ["a", "cluster"]) {
      const reply = await historyOf(`${id}?from=${from}&to=${from + 600}`);
      assert.equal(reply.interval_seconds, 60);
      assert.ok((reply.kept_from ?? now) <= from, "kept since before");
      const index = reply.columns.indexOf("write_mbps");
      assert.deepEqual(new Set(reply.points.map((point) => point[index])), new Set([10]));
      assert.ok(reply.points.length >= 10);
    }
    const none = await historyOf(`a?from=${from - 400 * 86_400}&to=${from - 300 * 86_400}`);
    assert.deepEqual(none.points, []);
    assert.equal((await historyOf("a")).interval_seconds, 5);
    const export_ = await console.ask(
      `/api/performance/export?node_id=cluster&from=${from}&to=${from + 600}`,
    );
    assert.equal(export_.status, 200, export_.text);
    const [head, ...rows] = export_.text.trimEnd().split("\r\n");
    assert.equal(head, CSV_COLUMNS.join(","));
    assert.ok(rows.length >= 10 && rows.length <= 11, `${rows.length} rows`);
    assert.match(rows[0] ?? "", /^[^,]+,\d+,cluster,cluster,online,10,/);
    const all = await console.ask(`/api/performance/export?from=${from}&to=${from + 600}`);
    assert.match(all.text, /,a,name of a,online,10,/);
    assert.equal((await console.ask("/api/performance/export?from=9&to=8")).status, 422);
  });
});
