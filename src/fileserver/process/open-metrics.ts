// Opens the listener of a FileServer's /metrics over the parts of the process.
import type { Logger } from "#base/log.ts";
import { knownHostOf } from "#fileserver/front/known-host.ts";
import { startMetricsListener } from "#fileserver/front/metrics-listener.ts";
import { type NodeMetricsDeps, nodeMetrics } from "#fileserver/front/node-metrics.ts";
import type { ServingState } from "#fileserver/operations/serving-state.ts";
import { TRASH_RETENTION_MS } from "#fileserver/operations/trash-reaper.ts";
import type { StatusServer } from "#os/status-server.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import type { IdentitySettings } from "#security/identity/sign-in-variables.ts";
import type { SecurityEvents } from "#telemetry/security-events.ts";

/** What is read anew at each request. */
export type LiveReadings = Pick<
  NodeMetricsDeps,
  "service" | "certDaysLeft" | "connections" | "clockSkewMs"
> & {
  /** Why the MetaServer refuses this node. */
  readonly refusal: () => string | undefined;
};

/** Where it listens, and what it says of the node's settings. */
export interface MetricsOptions {
  readonly dataFolder: string;
  readonly reserveBytes: bigint;
  readonly trashRetentionMs?: number;
  readonly listen: { readonly host: string };
  readonly advertise: string | undefined;
  readonly metricsPort: number;
  readonly identity: Pick<IdentitySettings, "mock">;
  readonly metricsToken: string | undefined;
}

/** The parts that it reads. */
export type MetricsParts = Omit<
  NodeMetricsDeps,
  keyof LiveReadings | "authMock" | "dataFolder" | "reserveBytes" | "securityEvents" | "trashRetentionMs"
> & {
  readonly securityEvents: SecurityEvents;
  readonly auditLog: AuditLog;
  readonly state: ServingState;
  readonly log: Logger;
};

/** Starts the listener of /metrics, readiness, audit lines and security events. */
export function openMetrics(
  options: MetricsOptions,
  opened: MetricsParts,
  live: LiveReadings,
): Promise<StatusServer> {
  const { dataFolder, reserveBytes, listen, metricsPort, identity } = options;
  const { storage, state } = opened;
  return startMetricsListener(
    {
      metrics: nodeMetrics({
        ...opened,
        ...live,
        dataFolder,
        reserveBytes,
        trashRetentionMs: options.trashRetentionMs ?? TRASH_RETENTION_MS,
        authMock: identity.mock,
      }),
      securityEvents: () => opened.securityEvents.list(),
      audit: (after, limit) => opened.auditLog.read(after, limit),
      // An absent MetaServer is no reason: local roots are served without it. Its refusal is one.
      notReady: () => [
        ...state.reasons(),
        ...[live.refusal() ?? []].flat(),
        ...(storage.failure === undefined ? [] : [`storage failed: ${storage.failure}`]),
      ],
      token: options.metricsToken,
      isKnownHost: knownHostOf(listen, options.advertise),
      clock: opened.clock,
      log: opened.log,
    },
    { host: listen.host, port: metricsPort },
  );
}
