// The console: builds its parts, joins them with their routes, listens, and stops in reverse order.
import type { Server as HttpsServer } from "node:https";
import type { AuditAct } from "#base/audit-act.ts";
import { errorText } from "#base/log.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";
import { TLS_LISTENER_POLICY } from "#base/tls-policy.ts";
import { ConsoleMetrics } from "#console/http/console-metrics.ts";
import type { App } from "#console/http/route.ts";
import { idpSignInRoutes } from "#console/operators/idp-sign-in-routes.ts";
import { endSessionsOfRemovedOperators } from "#console/operators/removed-operators.ts";
import { signInRoutes } from "#console/operators/sign-in-routes.ts";
import { actionRoutes } from "#console/routes/action-routes.ts";
import { alertRoutes } from "#console/routes/alert-routes.ts";
import { auditRoutes } from "#console/routes/audit-routes.ts";
import { clusterRoutes } from "#console/routes/cluster-routes.ts";
import { historyRoutes } from "#console/routes/history-routes.ts";
import { liveRoutes } from "#console/routes/live-routes.ts";
import { logRoutes } from "#console/routes/log-routes.ts";
import { maintenanceRoutes } from "#console/routes/maintenance-routes.ts";
import { moveRoutes } from "#console/routes/move-routes.ts";
import { newAddressRoutes } from "#console/routes/new-address-routes.ts";
import { notificationRoutes } from "#console/routes/notification-routes.ts";
import { builtPages, pageRoutes } from "#console/routes/page-routes.ts";
import { rolloutRoutes } from "#console/routes/rollout-routes.ts";
import { type Obstacle, statusRoutes } from "#console/routes/status-routes.ts";
import { trashRoutes } from "#console/routes/trash-routes.ts";
import { userRoutes } from "#console/routes/user-routes.ts";
import { userStateRoutes } from "#console/routes/user-state-routes.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";
import { TrustedProxies } from "#os/client-address.ts";
import { listenWithRetries } from "#os/listen-retry.ts";
import type { SettingsReply } from "#wire/webapi/settings.ts";
import { makeApp } from "./app.ts";
import { type BackgroundParts, openParts } from "./background-parts.ts";
import { type OperatorGate, openGate } from "./operator-gate.ts";

/** Requests a second from one address without a session, and its burst (D17). */
export const API_VISITOR_RATE = { perSecond: 20, burst: 40 } as const;
/** Requests a second in one operator's session, and its burst (D17). */
export const API_OPERATOR_RATE = { perSecond: 50, burst: 100 } as const;

/** A running console. */
export interface RunningConsole {
  readonly address: HostPort;
  /** Its address for browsers. */
  readonly url: string;
  /** Uses the certificate from the next handshake on. */
  useCertificate(tls: { readonly cert: string; readonly key: string }): void;
  /** Reads the password again; a changed one ends every session. */
  reload(): Promise<void>;
  /** Stops gracefully: no new requests, running ones end, files are saved. */
  stop(): Promise<void>;
}

/**
 * Starts everything. Rejects with BAD_ARGUMENT for an unavailable port or files of a newer Grove; with
 * DATA_IN_USE when another console uses the folder.
 */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  /** Cleanup in reverse order, each step whether or not others fail. */
  const ends = new AsyncDisposableStack();
  try {
    const { app, gate, parts } = await buildConsole(options, ends);
    const address = await listen(app, options.listen);
    return {
      address,
      url: `${options.tls === undefined ? "http" : "https"}://${formatHostPort(address)}`,
      useCertificate(tls) {
        (app.server as unknown as HttpsServer).setSecureContext({ ...tls, ...TLS_LISTENER_POLICY });
      },
      reload: async () => {
        if (!(await gate.password.reload())) return;
        const sessions = gate.sessions.endAll();
        options.log.info("password_changed", { sessions_ended: sessions });
        parts.audit.append({
          act: "operator.password_changed",
          actor: "node",
          subject: "console",
          detail: { sessions },
        });
      },
      stop: () => ends.disposeAsync(),
    };
  } catch (error) {
    await ends.disposeAsync().catch((cause: unknown) => {
      options.log.error("not_all_ended", { error: errorText(cause) });
    });
    throw error;
  }
}

/** A console that is built and does not listen yet. */
export interface BuiltConsole {
  readonly app: App;
  readonly gate: OperatorGate;
  readonly parts: BackgroundParts;
}

/**
 * Builds a console with all its routes; each part is deferred on `ends` once it is open. Rejects as
 * startConsole does.
 */
export async function buildConsole(
  options: ConsoleOptions,
  ends: AsyncDisposableStack,
): Promise<BuiltConsole> {
  ends.defer(() => options.directory.close());
  const metrics = new ConsoleMetrics(options.clock);
  ends.defer(() => metrics.close());
  const gate = openGate(options, metrics, ends);
  const parts = await openParts(options, gate, metrics, ends);
  const app = await openApp(options, gate, metrics);
  ends.defer(() => app.close());
  ends.defer(() => parts.hub.close());
  ends.defer(() => parts.actions.stop());
  plugRoutes(app, { options, gate, metrics, parts });
  const { people, clock, log } = options;
  if (people !== undefined) {
    const audit = (act: AuditAct): void => parts.audit.append(act);
    ends.defer(endSessionsOfRemovedOperators({ people, sessions: gate.sessions, clock, log, audit }));
  }
  await pageRoutes(app, builtPages());
  return { app, gate, parts };
}

function openApp(options: ConsoleOptions, gate: OperatorGate, metrics: ConsoleMetrics): Promise<App> {
  const { log, clock } = options;
  return makeApp({
    sessions: gate.sessions,
    proxies: new TrustedProxies(options.trustedProxies),
    clock,
    allowQueryToken: options.allowQueryToken ?? true,
    rates: options.rates ?? { visitor: API_VISITOR_RATE, operator: API_OPERATOR_RATE },
    onQueryToken: () => log.warn("query_token", { text: "a token in a URL ends up in logs and histories" }),
    onAnswered: (status) => metrics.countRequest(status),
    log,
    tls: options.tls,
    ...(options.checkReplies === undefined ? {} : { checkReplies: options.checkReplies }),
  });
}

interface Joined {
  readonly options: ConsoleOptions;
  readonly gate: OperatorGate;
  readonly metrics: ConsoleMetrics;
  readonly parts: BackgroundParts;
}

function plugRoutes(app: App, { options, gate, metrics, parts }: Joined): void {
  const { log, loginFailureDelayMs } = options;
  const { audit, auditCopies, gathering, history, watch, alerts, notifier, users, quotas, views, hub } =
    parts;
  actionRoutes(app, parts.actions);
  rolloutRoutes(app, parts.actions);
  logRoutes(app, parts.actions);
  const signIn = {
    ...gate,
    insecureHttp: options.insecureHttp ?? false,
    hasIdp: options.people !== undefined,
    ...(loginFailureDelayMs === undefined ? {} : { failureDelayMs: loginFailureDelayMs }),
    log,
    audit: (act: AuditAct): void => audit.append(act),
    onFailure: (address: string): void => alerts.loginFailed(address),
  };
  signInRoutes(app, signIn);
  const { people, clock, random } = options;
  if (people !== undefined) idpSignInRoutes(app, { ...signIn, people, clock, random });
  const auditing = { audit: (act: AuditAct): void => audit.append(act), flushAudit: () => audit.flush() };
  alertRoutes(app, { alerts, ...auditing });
  auditRoutes(app, { copies: auditCopies, gathering });
  notificationRoutes(app, {
    notifier,
    userReceivers: () => parts.userNotices?.receivers() ?? [],
    ...auditing,
  });
  maintenanceRoutes(app, { service: parts.maintenance, cluster: watch.clusterState });
  clusterRoutes(app, { views });
  historyRoutes(app, { cluster: watch.clusterState, history, clock: options.clock });
  liveRoutes(app, { hub, redeemTicket: (ticket) => gate.tickets.redeem(ticket) });
  userRoutes(app, { users, quotas });
  userStateRoutes(app, { service: parts.userStates });
  trashRoutes(app, { service: parts.userTrash });
  moveRoutes(app, { service: parts.moves });
  newAddressRoutes(app, { service: parts.newAddresses });
  statusRoutes(app, {
    metrics,
    settings: () => settingsOf(options, parts),
    metricsToken: options.metricsToken,
    unready: [
      () => (watch.clusterState.isStarting() ? { text: "not all nodes have been asked yet" } : undefined),
      () => failed("the audit log cannot be written", audit.failure),
      () => failed("the history cannot be saved", history.saveFailure),
      () => failed("alerts cannot be written", alerts.failure),
    ],
  });
}

function settingsOf(
  options: ConsoleOptions,
  { watch, metaServers }: Pick<BackgroundParts, "watch" | "metaServers">,
): SettingsReply {
  const { state, readAtWallMs } = watch.addresses.store;
  return {
    store: {
      kind: options.store?.kind ?? null,
      place: options.store?.place ?? null,
      state,
      read_at: readAtWallMs === undefined ? null : Math.floor(readAtWallMs / 1_000),
    },
    metaservers: metaServers.readings().map(({ address, isLate, isOffline, lastSeenWallMs, reason }) => ({
      address,
      state: isOffline ? "offline" : isLate ? "late" : "answering",
      last_seen: lastSeenWallMs === 0 ? null : Math.floor(lastSeenWallMs / 1_000),
      ...(reason === undefined ? {} : { reason }),
    })),
    default_password: options.password.isDefault,
    is_https: options.tls !== undefined,
  };
}

function failed(text: string, detail: string | undefined): Obstacle | undefined {
  return detail === undefined ? undefined : { text, detail };
}

async function listen(app: App, place: HostPort): Promise<HostPort> {
  await listenWithRetries(place, {
    listen: () => app.listen({ host: place.host, port: place.port }),
    otherwise: "choose another with -listen",
  });
  const bound = app.server.address();
  return { host: place.host, port: typeof bound === "object" && bound !== null ? bound.port : place.port };
}
