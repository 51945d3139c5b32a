// The routes of history and rates: GET /api/history/{fsID}, /api/performance and its CSV (spec 2.8, 4.1, D9).
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { QUARTER_ROWS_KEPT } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import { gradeOf, isOnline } from "#console/cluster/node-status.ts";
import { performanceReply as performanceOf } from "#console/cluster/performance-view.ts";
import { CLUSTER, type History } from "#console/history/history.ts";
import {
  csvFileName,
  csvHead,
  csvRows,
  type ExportedNode,
  performanceCsv,
} from "#console/history/performance-csv.ts";
import { type App, ProblemError, sendJson, viewerOf } from "#console/http/route.ts";
import { exportQuery, historyQuery, historyReply, performanceReply } from "#wire/webapi/performance.ts";

/** Concurrent exports of history; more are answered RATE_LIMITED. */
const HISTORY_EXPORTS_MAX = 8;
/** Concurrent exports of one address. */
export const HISTORY_EXPORTS_PER_ADDRESS = 2;
/** Time limit for reading an export: 1,000 nodes make 90 MB. */
export const HISTORY_EXPORT_TIMEOUT_MS: number = 5 * 60_000;
/** Cache time of an answer about rates, for many visitors of the same one. */
const PERFORMANCE_KEPT_MS = 1_000;

const EXPORT_RETRY_SECONDS = 5;
const DAY_SECONDS = 86_400;
const LONGEST_SECONDS: number = QUARTER_ROWS_KEPT * 900;

/** Dependencies of the routes. */
export interface HistoryRoutesDeps {
  readonly cluster: Pick<ClusterState, "nodes" | "node">;
  readonly history: Pick<History, "reply" | "has" | "range" | "longRange" | "windowRates" | "errorWindow">;
  readonly clock: Clock;
}

/** Registers the routes. They hold nothing of users, so visitors get the same as operators. */
export function historyRoutes(app: App, deps: HistoryRoutesDeps): void {
  const { cluster, history } = deps;
  app.get(
    "/api/history/:fsID",
    {
      config: { auth: "public" },
      schema: {
        operationId: "getHistory",
        summary: "The last hour of a node, or of the cluster, or what is kept of the time before",
        description:
          "Without from, or from within the last hour: one point for each poll of 5 s, or for each step. A row of nulls is a gap. Rates in MB are 10^6 bytes. Of the cluster, " +
          "rates are sums, the error rate weighs by operations, and percentiles are those of the worst node. From earlier on: points of a " +
          "minute, which are kept for 7 days, or of 15 minutes, kept for 400 days, or of a multiple, so that there are 3,000 at most; " +
          "interval_seconds says of which, kept_from since when such rows are there. Means over it, percentiles their maximum.",
        tags: ["history"],
        params: z.object({ fsID: z.string().describe('Id of a node, or "cluster"') }),
        querystring: historyQuery,
        response: { 200: historyReply },
      },
    },
    async (request) => {
      const { fsID } = request.params;
      if (fsID !== CLUSTER && cluster.node(fsID) === undefined && !history.has(fsID)) throw noSuchNode(fsID);
      const { from, to, step } = request.query;
      return await history.reply(fsID, {
        ...(from === undefined ? {} : { from: Number(from) }),
        ...(to === undefined ? {} : { to: Number(to) }),
        ...(step === undefined ? {} : { step: Number(step) }),
      });
    },
  );
  performanceRoute(app, deps);
  exportRoute(app, deps);
}

function performanceRoute(app: App, { cluster, history, clock }: HistoryRoutesDeps): void {
  let kept: { readonly body: Buffer; readonly atMs: number } | undefined;
  app.get(
    "/api/performance",
    {
      config: { auth: "public" },
      schema: {
        operationId: "getPerformance",
        summary: "Rates of the last 60 s and latencies, of the cluster and of each node",
        description: "MB are 10^6 bytes. An error rate is given from 20 operations within the 60 s on.",
        tags: ["history"],
        response: { 200: performanceReply },
      },
    },
    (_request, reply) => {
      const nowMs = clock.steadyMs();
      if (kept === undefined || nowMs - kept.atMs >= PERFORMANCE_KEPT_MS) {
        const body = JSON.stringify(performanceOf(cluster.nodes(), history, clock.wallMs()));
        kept = { body: Buffer.from(body), atMs: nowMs };
      }
      sendJson(reply, kept.body);
    },
  );
}

function exportRoute(app: App, deps: HistoryRoutesDeps): void {
  const { cluster, history, clock } = deps;
  const slots = new ExportSlots();
  app.get(
    "/api/performance/export",
    {
      config: { auth: "public" },
      schema: {
        operationId: "exportPerformance",
        summary: "The last hour as CSV, or what is kept of the time between two moments",
        description:
          "RFC 4180 with a header: one row for each node and kept snapshot, the oldest first; of one node, or of all that are not " +
          "offline. A row's status is what its disk and its temperature made it. With from or to (Unix seconds; a day before to without from): rows of " +
          "a minute, or of 15 minutes where from is more than 7 days ago, of the cluster too (node_id=cluster).",
        tags: ["history"],
        querystring: exportQuery,
        response: { 200: { description: "The file", content: { "text/csv": { schema: z.string() } } } },
      },
    },
    async (request, reply) => {
      const { node_id: nodeId, from, to } = request.query;
      const isLong = from !== undefined || to !== undefined;
      const nodes = isLong ? longNodes(deps, nodeId) : hourNodes(cluster, nodeId);
      const nowUnix = clock.wallMs() / 1_000;
      const until = Math.min(Number(to ?? nowUnix), nowUnix);
      const since = Math.max(Number(from ?? until - DAY_SECONDS), nowUnix - LONGEST_SECONDS);
      const release = slots.take(networkOf(viewerOf(request).address));
      const pieces = Readable.from(
        isLong ? longCsv(nodes, history, since, until) : csvPieces(exported(nodes as NodeState[], history)),
        { objectMode: false },
      );
      const cancel = clock.after(HISTORY_EXPORT_TIMEOUT_MS, () => pieces.destroy());
      pieces.once("close", () => {
        cancel();
        release();
      });
      reply.type("text/csv; charset=utf-8");
      reply.header("content-disposition", `attachment; filename="${csvFileName(clock.wallMs())}"`);
      // A stream; the schema describes its content.
      return await reply.send(pieces as never);
    },
  );
}

/** Slots for exports, few in all and fewer per address, so that slow readers do not block the others. */
class ExportSlots {
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  /** Takes a slot; the returned function gives it back. Throws RATE_LIMITED. */
  take(address: string): () => void {
    const own = this.#byAddress.get(address) ?? 0;
    if (this.#total >= HISTORY_EXPORTS_MAX || own >= HISTORY_EXPORTS_PER_ADDRESS) {
      throw new ProblemError("RATE_LIMITED", "too many exports at once", {
        retryAfterSeconds: EXPORT_RETRY_SECONDS,
      });
    }
    this.#total++;
    this.#byAddress.set(address, own + 1);
    return () => {
      this.#total--;
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, left);
    };
  }
}

/** Chunks of the file, yielding between them. */
async function* csvPieces(nodes: readonly ExportedNode[]): AsyncGenerator<string, void> {
  const grade = (diskUsagePercent: number | null, cpuTempCelsius: number | null): string =>
    gradeOf({ diskUsagePercent, cpuTempCelsius });
  for (const piece of performanceCsv(nodes, grade)) {
    yield piece;
    await nextTurn();
  }
}

/** A node, or all nodes together, in the long-term history. */
type Named = Pick<NodeState, "id" | "name">;

function hourNodes(cluster: HistoryRoutesDeps["cluster"], nodeId: string | undefined): readonly NodeState[] {
  return nodeId === undefined ? onlineNodes(cluster) : [knownNode(cluster, nodeId)];
}

/** All current nodes, offline ones too, and removed ones with kept history. */
function longNodes({ cluster, history }: HistoryRoutesDeps, nodeId: string | undefined): readonly Named[] {
  if (nodeId === undefined) return cluster.nodes();
  const node = cluster.node(nodeId);
  if (node !== undefined) return [node];
  if (nodeId === CLUSTER || history.has(nodeId)) return [{ id: nodeId, name: nodeId }];
  throw noSuchNode(nodeId);
}

/** Chunks of the long-term history, by spans of time, so that few rows are in memory. */
async function* longCsv(
  nodes: readonly Named[],
  history: Pick<History, "longRange">,
  from: number,
  to: number,
): AsyncGenerator<string, void> {
  yield csvHead();
  const [first] = nodes;
  const whole = first === undefined ? undefined : await history.longRange(first.id, from, to);
  if (whole === undefined) return;
  const span = whole.seconds * Math.max(1, Math.floor(LONG_ROWS_AT_ONCE / nodes.length));
  const grade = (diskUsagePercent: number | null, cpuTempCelsius: number | null): string =>
    gradeOf({ diskUsagePercent, cpuTempCelsius });
  for (let start = Math.ceil(from / whole.seconds) * whole.seconds; start <= to; start += span) {
    const end = Math.min(to, start + span - 1);
    const ranges: ExportedNode[] = [];
    for (const { id, name } of nodes) {
      const range = await history.longRange(id, start, end, whole.seconds);
      if (range !== undefined) ranges.push({ id, name, range });
    }
    for (const piece of csvRows(ranges, grade, whole.seconds)) {
      yield piece;
      await nextTurn();
    }
  }
}

/** Rows of all nodes that are read for one span of time. */
const LONG_ROWS_AT_ONCE = 10_000;

function exported(nodes: readonly NodeState[], history: Pick<History, "range">): ExportedNode[] {
  return nodes.flatMap(({ id, name }) => {
    const range = history.range(id);
    return range === undefined ? [] : [{ id, name, range }];
  });
}

function onlineNodes(cluster: Pick<ClusterState, "nodes">): readonly NodeState[] {
  return cluster.nodes().filter(isOnline);
}

function knownNode(cluster: Pick<ClusterState, "node">, nodeId: string): NodeState {
  const node = cluster.node(nodeId);
  if (node === undefined) throw noSuchNode(nodeId);
  return node;
}

function noSuchNode(nodeId: string): ProblemError {
  return new ProblemError("NO_SUCH_NODE", `there is no node ${JSON.stringify(nodeId.slice(0, 63))}`);
}
