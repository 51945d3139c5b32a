// The cluster as visitors and operators see it, as bytes cached until a change (spec 5.8.4, 6, decision D4).
import { hash } from "node:crypto";
import { AUDIENCES, type Audience } from "#base/audience.ts";
import type { Clock } from "#base/clock.ts";
import { stringify64, toJson64 } from "#base/json64.ts";
import { U64_MAX } from "#base/limits.ts";
import type { NodeState } from "./cluster-state.ts";
import type { ClusterStateStore } from "./cluster-state-store.ts";
import type { ClusterUsers } from "./cluster-users.ts";
import { isOnline } from "./node-status.ts";
import type { NodeFigures } from "./node-view.ts";
import { NodeViewCache } from "./node-view-cache.ts";

/** Time for which an answer of GET /api/cluster is reused: 1,000 nodes change 200 times a second. */
const CLUSTER_VIEW_KEPT_MS = 200;
/** Time after a request for which the views are kept ready for the next. */
const CLUSTER_VIEW_LOOKED_AT_MS = 30_000;

/** What the views are made from. */
export interface ClusterViewsDeps {
  readonly cluster: Pick<ClusterStateStore, "nodes" | "node" | "onChange" | "onPoll">;
  /** Rates and forecast of a node, as of its last poll. */
  readonly figuresOf: (nodeId: string) => NodeFigures;
  readonly users: Pick<ClusterUsers, "json">;
  readonly clock: Clock;
}

/** An answer with its entity tag. */
export interface View {
  readonly body: Buffer;
  readonly etag: string;
}

interface CachedView extends View {
  readonly revision: number;
  readonly madeMs: number;
  /** The users' part that the view holds; undefined in the public view. */
  readonly users?: unknown;
}

const COMMA = Buffer.from(",");
const FRAME_END = Buffer.from("]}");
/** The users' part for visitors (spec 5.8.4). */
const NO_USERS = Buffer.from('],"users":{},"total_users":0}');

/** Both views. */
export class ClusterViews {
  readonly #deps: ClusterViewsDeps;
  readonly #pieces: NodeViewCache;
  readonly #changed = new Set<string>();
  readonly #ends: readonly (() => void)[];
  #revision = 0;
  #isWriting = false;
  /** Steady time of each audience's last request. */
  readonly #askedMs = { visitor: Number.NEGATIVE_INFINITY, operator: Number.NEGATIVE_INFINITY };
  #public: CachedView | undefined;
  #operator: CachedView | undefined;
  #operatorViews = 0;
  readonly #startedMs: number;

  constructor(deps: ClusterViewsDeps) {
    this.#deps = deps;
    this.#startedMs = Math.floor(deps.clock.wallMs());
    this.#pieces = new NodeViewCache(deps.figuresOf);
    this.#ends = [
      deps.cluster.onChange((id) => this.#hasChanged(id)),
      // In the second turn, because rates are known only after the first.
      deps.cluster.onPoll(({ node }) => this.#hasChanged(node.id)),
    ];
    for (const { id } of deps.cluster.nodes()) this.#hasChanged(id);
  }

  /** The answer of GET /api/cluster for visitors. Nothing in it depends on users, nor do length and tag. */
  public(): View {
    const nowMs = this.#asked("visitor");
    if (this.#public !== undefined && this.#isFresh(this.#public, nowMs)) return this.#public;
    const body = Buffer.concat([this.#head("visitor"), ...this.#nodes("visitor"), NO_USERS]);
    const etag = `"${hash("sha256", body, "base64url").slice(0, 22)}"`;
    this.#public = { body, etag, revision: this.#revision, madeMs: nowMs };
    return this.#public;
  }

  /** The answer of GET /api/cluster for operators. */
  async operator(): Promise<View> {
    const users = await this.#deps.users.json();
    const nowMs = this.#asked("operator");
    const kept = this.#operator;
    if (kept !== undefined && kept.users === users && this.#isFresh(kept, nowMs)) return kept;
    const body = Buffer.concat([
      this.#head("operator"),
      ...this.#nodes("operator"),
      Buffer.from('],"users":'),
      ...users.pieces,
      Buffer.from(`,"total_users":${users.total}}`),
    ]);
    // A counter, because a digest of tens of megabytes takes too long.
    const etag = `"${this.#startedMs.toString(36)}-${++this.#operatorViews}"`;
    this.#operator = { body, etag, revision: this.#revision, madeMs: nowMs, users };
    return this.#operator;
  }

  /** The `data` of a metrics.snapshot (decision D8): nodes and sums. */
  snapshot(audience: Audience): Buffer {
    this.#asked(audience);
    const cluster = JSON.stringify(totalsOf(this.#deps.cluster.nodes()));
    return Buffer.concat([
      Buffer.from(`{"cluster":${cluster},"nodes":[`),
      ...this.#nodes(audience),
      FRAME_END,
    ]);
  }

  /** Unsubscribes from the cluster. */
  close(): void {
    for (const end of this.#ends) end();
  }

  /** True for an unchanged view and for a recent one, because nodes change many times a second. */
  #isFresh(view: CachedView, nowMs: number): boolean {
    return view.revision === this.#revision || nowMs - view.madeMs < CLUSTER_VIEW_KEPT_MS;
  }

  #head(audience: Audience): Buffer {
    const { clock, cluster } = this.#deps;
    const generatedAt = Math.floor(clock.wallMs() / 1_000);
    const totals = stringify64(totalsOf(cluster.nodes()));
    return Buffer.from(
      `{"generated_at":${generatedAt},"poll_interval_seconds":5,"cluster":${totals},` +
        `"redacted":${audience === "visitor"},"nodes":[`,
    );
  }

  #nodes(audience: Audience): Buffer[] {
    const pieces: Buffer[] = [];
    for (const node of this.#deps.cluster.nodes()) {
      if (pieces.length > 0) pieces.push(COMMA);
      pieces.push(this.#pieces.of(node, audience));
    }
    return pieces;
  }

  #asked(audience: Audience): number {
    const nowMs = this.#deps.clock.steadyMs();
    this.#askedMs[audience] = nowMs;
    return nowMs;
  }

  #hasChanged(nodeId: string): void {
    this.#revision++;
    this.#pieces.hasChanged(nodeId);
    this.#changed.add(nodeId);
    if (this.#isWriting) return;
    this.#isWriting = true;
    setImmediate(() => this.#writeChanged());
  }

  /**
   * While requests come, writes changed nodes soon after their polls, so that the next request does not wait
   * for a thousand of them. Without recent requests nothing is written.
   */
  #writeChanged(): void {
    const { cluster, clock } = this.#deps;
    const nowMs = clock.steadyMs();
    for (const id of this.#changed) {
      this.#changed.delete(id);
      const node = cluster.node(id);
      if (node !== undefined) {
        for (const audience of AUDIENCES) {
          if (nowMs - this.#askedMs[audience] < CLUSTER_VIEW_LOOKED_AT_MS) this.#pieces.of(node, audience);
        }
      }
      break;
    }
    this.#isWriting = this.#changed.size > 0;
    if (this.#isWriting) setImmediate(() => this.#writeChanged());
  }
}

function totalsOf(nodes: readonly NodeState[]): Readonly<Record<string, number | string>> {
  let [total, used, online, unknown] = [0n, 0n, 0, 0];
  for (const node of nodes) {
    if (isOnline(node)) online++;
    if (node.status === "unknown") unknown++;
    total += node.lastGood?.diskTotalBytes ?? 0n;
    used += node.lastGood?.diskUsedBytes ?? 0n;
  }
  return {
    nodes_total: nodes.length,
    nodes_online: online,
    nodes_unknown: unknown,
    disk_total_bytes: toJson64(total < U64_MAX ? total : U64_MAX),
    disk_used_bytes: toJson64(used < U64_MAX ? used : U64_MAX),
  };
}
