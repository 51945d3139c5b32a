// The MetaServer's HTTP listener: /health, /ready, and /metrics with its certificates' days left (B-11).
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { HostPort } from "#base/node-id.ts";
import { VERSION } from "#base/version.ts";
import type { Directory, StoreState } from "#metaserver/directory/directory.ts";
import { type StatusServer, serveStatus } from "#os/status-server.ts";

/** Sources of the listener's answers. */
export interface StatusListenerDeps {
  readonly directory: Pick<Directory, "nodes" | "watch">;
  /** Whole days until the server's certificate ends; null without TLS. */
  readonly certDaysLeft: () => number | null;
  /** End of the authority's own certificate; undefined without -ca_dir. */
  readonly authorityEndsWallMs: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Listens. Rejects with BAD_ARGUMENT when the port is not available. */
export async function startStatusListener(
  deps: StatusListenerDeps,
  address: HostPort,
): Promise<StatusServer> {
  const startedMs = deps.clock.steadyMs();
  let store: StoreState = { available: true };
  const unwatch = deps.directory.watch((state) => {
    store = state;
  });
  const { clock, log } = deps;
  const failed = (error: unknown, response: ServerResponse): void => {
    log.warn("metrics_failed", { error: errorText(error) });
    send(response, 503, { error: "the metadata store does not answer" });
  };
  const listener = await serveStatus(
    {
      clock,
      failed,
      answer: (request, response) => answer(deps, { startedMs, store }, request, response),
      otherwise: "choose another with -metrics",
    },
    address,
  ).catch((error: unknown) => {
    unwatch();
    throw error;
  });
  return {
    address: listener.address,
    close: () => {
      unwatch();
      return listener.close();
    },
  };
}

async function answer(
  deps: StatusListenerDeps,
  state: { readonly startedMs: number; readonly store: StoreState },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return send(response, 405, { error: "only GET and HEAD" });
  }
  switch ((request.url ?? "").split("?", 1)[0]) {
    case "/health":
      return send(response, 200, { status: "ok" });
    case "/ready": {
      const reasons = state.store.available ? [] : [state.store.reason];
      return send(response, reasons.length === 0 ? 200 : 503, { ready: reasons.length === 0, reasons });
    }
    case "/metrics": {
      // Without a store there is still a certificate to watch.
      const nodes = state.store.available ? await deps.directory.nodes().catch(() => undefined) : undefined;
      const { authorityEndsWallMs: endsMs, clock } = deps;
      return send(response, 200, {
        version: VERSION,
        uptime_seconds: Math.floor((clock.steadyMs() - state.startedMs) / 1_000),
        cert_days_left: deps.certDaysLeft(),
        authority_days_left: endsMs === undefined ? null : Math.floor((endsMs - clock.wallMs()) / DAY_MS),
        store_available: nodes !== undefined,
        nodes_known: nodes?.length ?? null,
        nodes_live: nodes?.filter(({ live }) => live).length ?? null,
        node_versions: nodes === undefined ? null : countsOf(nodes.map((node) => node.softwareVersion)),
      });
    }
    default:
      return send(response, 404, { error: "no such path" });
  }
}

/** Number of nodes by version, for rollouts (D18). */
function countsOf(versions: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const version of versions) counts.set(version, (counts.get(version) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function send(response: ServerResponse, status: number, document: unknown): void {
  const body = JSON.stringify(document);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(body);
}
