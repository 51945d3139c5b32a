// The background parts of the console: polls, history, alerts, the live stream, the audit log.
import { join } from "node:path";
import { Notifier } from "#console/alerts/notifier.ts";
import type { UserNotices } from "#console/alerts/user-notices.ts";
import { ClusterUsers } from "#console/cluster/cluster-users.ts";
import { ClusterViews } from "#console/cluster/cluster-views.ts";
import { type ClusterWatch, watchCluster } from "#console/cluster/cluster-watch.ts";
import { DecidedUsers } from "#console/cluster/decided-users.ts";
import { feedHistory } from "#console/cluster/history-feed.ts";
import { HomeNodes } from "#console/cluster/home-nodes.ts";
import { MetaServerWatch } from "#console/cluster/metaserver-watch.ts";
import { UserList } from "#console/cluster/user-list.ts";
import { History } from "#console/history/history.ts";
import type { ConsoleMetrics } from "#console/http/console-metrics.ts";
import { Hub } from "#console/live/hub.ts";
import { NodeLocks } from "#console/orchestration/node-locks.ts";
import { ActionService } from "#console/services/action-service.ts";
import { AlertService } from "#console/services/alert-service.ts";
import { AuditGathering } from "#console/services/audit-gathering.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";
import { DrainedNodes } from "#console/services/drained-nodes.ts";
import { MaintenanceService } from "#console/services/maintenance-service.ts";
import { watchMetaServers } from "#console/services/metaserver-events.ts";
import { MoveRunner } from "#console/services/move-runner.ts";
import { NewAddressService } from "#console/services/new-address-service.ts";
import { quotaDialer, trashDialer, userStateDialer, userStateReader } from "#console/services/node-dial.ts";
import { feedNotifications } from "#console/services/notification-feed.ts";
import { QuotaService } from "#console/services/quota-service.ts";
import { RestoredNodes } from "#console/services/restored-node.ts";
import { RootMoveService } from "#console/services/root-move-service.ts";
import { TrashService } from "#console/services/trash-service.ts";
import { openUserNotices } from "#console/services/user-notice-feed.ts";
import { UserStateService } from "#console/services/user-state-service.ts";
import { holdAlone } from "#os/file-lock.ts";
import { AuditCopies } from "#security/audit/audit-copies.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import type { OperatorGate } from "./operator-gate.ts";

/** The parts that routes use. */
export interface BackgroundParts {
  /** The console's own log. */
  readonly audit: AuditLog;
  /** The gathered lines of all nodes and of the console. */
  readonly auditCopies: AuditCopies;
  readonly gathering: AuditGathering;
  readonly history: History;
  readonly watch: ClusterWatch;
  readonly metaServers: MetaServerWatch;
  readonly alerts: AlertService;
  readonly notifier: Notifier;
  /** Undefined where users are told nothing. */
  readonly userNotices: UserNotices | undefined;
  readonly maintenance: MaintenanceService;
  readonly users: UserList;
  readonly quotas: QuotaService;
  readonly userStates: UserStateService;
  readonly userTrash: TrashService;
  readonly moves: RootMoveService;
  readonly newAddresses: NewAddressService;
  readonly views: ClusterViews;
  readonly actions: ActionService;
  /** Closed before the listener, so that browsers get the reason. */
  readonly hub: Hub;
}

/** Locked by the console that uses the folder. */
const LOCK_FILE = "grove.lock";

/** Opens every part; each is deferred on `ends` once it is open. */
export async function openParts(
  options: ConsoleOptions,
  gate: OperatorGate,
  metrics: ConsoleMetrics,
  ends: AsyncDisposableStack,
): Promise<BackgroundParts> {
  const { clock, log, random, directory, dataFolder } = options;
  ends.defer(holdFolder(dataFolder));
  const audit = await AuditLog.open({ dataFolder, clock, log });
  ends.defer(() => audit.close());
  const history = await History.open({ folder: dataFolder, clock, log });
  ends.defer(() => history.close());
  const notifier = await Notifier.open({ dataFolder, clock, log, random, settings: options.notices });
  ends.defer(() => notifier.close());
  const maintenance = openMaintenance(options, { notifier, audit });
  ends.defer(() => maintenance.close());
  const locks = new NodeLocks(clock);
  const drained = new DrainedNodes({ directory, clock, log });
  ends.defer(() => drained.close());
  const watch = openWatch(options, { notifier, maintenance, locks, drained });
  ends.defer(() => watch.close());
  ends.defer(maintenance.onChange((nodeId) => watch.clusterState.noted(nodeId)));
  ends.defer(drained.onChange((nodeId) => watch.clusterState.noted(nodeId)));
  const homes = new HomeNodes({ clock, log, directory });
  ends.defer(feedHistory(watch.clusterState, history, homes));
  addPollFigures(metrics, watch);
  addHistoryFigures(metrics, history);
  const metaServers = new MetaServerWatch({ addresses: options.metaServers ?? [], clock, log });
  ends.defer(() => metaServers.close());
  const alerts = await openAlerts(options, gate, { notifier, history, watch, homes, metaServers }, ends);
  const gathered = await openGathering(options, { audit, watch, alerts, homes }, ends);
  const people = openUsers(options, { audit, history, watch }, homes);
  ends.defer(() => people.users.close());
  const moves = await openMoves(options, { audit, watch, users: people.users, drained }, ends);
  const live = openLive(options, gate, { history, watch, alerts, users: people.users });
  ends.defer(live.end);
  addSocketFigures(metrics, live.hub);
  const actionService = await ActionService.open({
    options,
    audit,
    alerts,
    notifier,
    watch,
    history,
    locks,
    hub: live.hub,
  });
  ends.defer(() => actionService.close());
  // Polls start after all listeners. A store that does not answer yet does not delay sign-ins.
  void watch.start();
  return {
    audit,
    ...gathered,
    history,
    watch,
    metaServers,
    alerts,
    notifier,
    maintenance,
    ...people,
    moves,
    newAddresses: new NewAddressService({
      withStore: options.withNodeStore,
      audit: (act) => audit.append(act),
      flushAudit: () => audit.flush(),
    }),
    views: live.views,
    actions: actionService,
    hub: live.hub,
  };
}

/**
 * Locks the folder: two consoles would overwrite each other's files and end each other's actions. Throws
 * DATA_IN_USE.
 */
function holdFolder(folder: string): () => void {
  return holdAlone(
    join(folder, LOCK_FILE),
    `${folder} is in use by another console; stop that one first, or name another folder with -data`,
  );
}

function openMaintenance(
  { clock, log, pausePlacement }: ConsoleOptions,
  { notifier, audit }: Pick<BackgroundParts, "notifier" | "audit">,
): MaintenanceService {
  return new MaintenanceService({
    maintenanceStore: notifier.maintenance,
    pausePlacement,
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
    clock,
    log,
  });
}

function openWatch(
  { clock, log, directory, metricsToken, allowNodes, lookup }: ConsoleOptions,
  {
    notifier,
    maintenance,
    locks,
    drained,
  }: Pick<BackgroundParts, "notifier" | "maintenance"> & {
    locks: NodeLocks;
    drained: DrainedNodes;
  },
): ClusterWatch {
  return watchCluster({
    directory,
    metricsToken,
    allowNodes: allowNodes ?? [],
    notesOn: (nodeId) => {
      const maintenanceUntilWallMs = notifier.maintenanceUntil(nodeId);
      const wanted = maintenance.of(nodeId);
      const lockedBy = locks.holder(nodeId)?.actionId;
      return {
        ...(maintenanceUntilWallMs === undefined ? {} : { maintenanceUntilWallMs }),
        ...(wanted === undefined ? {} : { maintenance: wanted }),
        ...(lockedBy === undefined ? {} : { lockedBy }),
        ...(drained.has(nodeId) ? { drained: true as const } : {}),
      };
    },
    ...(lookup === undefined ? {} : { lookup }),
    clock,
    log,
  });
}

async function openAlerts(
  { clock, log, directory, dataFolder, certificateDaysLeft }: ConsoleOptions,
  gate: OperatorGate,
  parts: Pick<BackgroundParts, "notifier" | "history" | "watch" | "metaServers"> & {
    readonly homes: HomeNodes;
  },
  ends: AsyncDisposableStack,
): Promise<AlertService> {
  const { notifier, history, watch, metaServers, homes } = parts;
  const alerts = await AlertService.open({
    folder: dataFolder,
    clock,
    log,
    cluster: watch.clusterState,
    history,
    homeOf: (username) => homes.ofUser(username),
    metaServers: () => metaServers.readings(),
    isDefaultPassword: () => gate.password.isDefault,
    ...(certificateDaysLeft === undefined ? {} : { certificateDaysLeft }),
  });
  ends.defer(() => alerts.close());
  ends.defer(feedNotifications({ notifier, service: alerts, cluster: watch.clusterState }));
  ends.defer(watchMetaServers({ directory, alerts, clock, log }));
  for (const damaged of history.damaged) alerts.wasReset(damaged);
  for (const { file, setAsideAs } of notifier.damaged) alerts.wasReset(file, setAsideAs);
  return alerts;
}

async function openGathering(
  options: ConsoleOptions,
  parts: Pick<BackgroundParts, "audit" | "watch" | "alerts"> & { readonly homes: HomeNodes },
  ends: AsyncDisposableStack,
): Promise<Pick<BackgroundParts, "auditCopies" | "gathering" | "userNotices">> {
  const { clock, log, dataFolder, store } = options;
  const { audit, watch, alerts, homes } = parts;
  const userNotices = await openUserNotices(options, { cluster: watch.clusterState, homes, alerts }, ends);
  const auditCopies = await AuditCopies.open({ dataFolder, clock, log });
  ends.defer(() => auditCopies.close());
  const restored = new RestoredNodes(watch.clusterState, store);
  ends.defer(() => restored.close());
  const gathering = new AuditGathering({
    copies: auditCopies,
    own: audit,
    cluster: watch.clusterState,
    addresses: watch.addresses,
    http: watch.http,
    audit: (act) => audit.append(act),
    onLines: (_node, lines) => userNotices?.heard(lines),
    onBroken: (occurrence) => void alerts.happened(occurrence),
    onRestored: (found) => void alerts.happened(restored.occurrenceOf(found)),
    clock,
    log,
  });
  ends.defer(() => gathering.close());
  return { auditCopies, gathering, userNotices };
}

function openUsers(
  { clock, log, directory, nodeAuthority }: ConsoleOptions,
  { audit, history, watch }: Pick<BackgroundParts, "audit" | "history" | "watch">,
  homes: HomeNodes,
): Pick<BackgroundParts, "users" | "quotas" | "userStates" | "userTrash"> {
  const decided = new DecidedUsers({ clock, log, directory });
  const users = new UserList({
    clock,
    cluster: watch.clusterState,
    homes,
    decided,
    fullInDays: (username) => history.forecastUserFullDays(username),
  });
  const quotas = new QuotaService({
    clock,
    log,
    cluster: watch.clusterState,
    directory,
    users,
    setQuotaOnNode: quotaDialer(nodeAuthority),
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
  });
  const userStates = new UserStateService({
    clock,
    log,
    cluster: watch.clusterState,
    decided,
    directory,
    setOnNode: userStateDialer(nodeAuthority),
    onNode: userStateReader(nodeAuthority),
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
  });
  const userTrash = new TrashService({
    log,
    cluster: watch.clusterState,
    directory,
    users,
    onNode: trashDialer(nodeAuthority),
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
  });
  return { users, quotas, userStates, userTrash };
}

async function openMoves(
  { clock, log, random, directory, dataFolder, store, withNodeStore: withStore }: ConsoleOptions,
  parts: Pick<BackgroundParts, "audit" | "watch" | "users"> & { readonly drained: DrainedNodes },
  ends: AsyncDisposableStack,
): Promise<RootMoveService> {
  const { audit, watch, users, drained } = parts;
  const runner = await MoveRunner.open({ dataFolder, withStore, clock, log });
  ends.defer(() => runner.close());
  return new RootMoveService({
    directory,
    drained,
    store,
    withStore,
    runner,
    cluster: watch.clusterState,
    users,
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
    random,
    clock,
  });
}

function openLive(
  { clock, log }: ConsoleOptions,
  { sessions }: OperatorGate,
  { history, watch, alerts, users }: Pick<BackgroundParts, "history" | "watch" | "alerts" | "users">,
): { views: ClusterViews; hub: Hub; end: () => void } {
  const views = new ClusterViews({
    cluster: watch.clusterState,
    figuresOf: (id) => ({
      rates: history.rates(id),
      diskFullInDays: history.forecastDiskFullDays(id),
      isDiskForecastKnown: history.isDiskForecastKnown(id),
    }),
    users: new ClusterUsers(users),
    clock,
  });
  const hub = new Hub({
    clock,
    log,
    snapshot: (audience) => views.snapshot(audience),
    isSessionLive: (session) => sessions.isLive(session),
  });
  const ends = [
    () => views.close(),
    watch.clusterState.onRound(() => hub.broadcastSnapshot()),
    alerts.onEvent((event) => hub.alertEvent(event)),
    sessions.onEnd((session) => hub.endSession(session)),
  ];
  return { views, hub, end: () => ends.forEach((end) => end()) };
}

function addPollFigures(metrics: ConsoleMetrics, { clusterState, poller }: ClusterWatch): void {
  const counter = (name: string, help: string, read: () => number): void =>
    metrics.add({ name, type: "counter", help, read });
  counter("polls_answered", "Polls of nodes that were answered.", () => poller.counts.answered);
  counter("polls_failed", "Polls of nodes that counted as no answer.", () => poller.counts.failed);
  counter("polls_missed", "Polls that did not begin in time.", () => poller.counts.missed);
  metrics.add({
    name: "nodes",
    type: "gauge",
    help: "Nodes that are known.",
    read: () => clusterState.nodes().length,
  });
}

function addSocketFigures(metrics: ConsoleMetrics, hub: Hub): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    metrics.add({ name, type: "gauge", help, read });
  gauge("sockets_of_visitors", "WebSockets of visitors.", () => hub.counts.visitors);
  gauge("sockets_of_operators", "WebSockets of operators.", () => hub.counts.operators);
  metrics.add({
    name: "sockets_refused",
    type: "counter",
    help: "WebSockets for which there was no place.",
    read: () => hub.counts.refused,
  });
}

function addHistoryFigures(metrics: ConsoleMetrics, history: History): void {
  metrics.add(
    {
      name: "history_written_bytes",
      type: "counter",
      help: "Bytes of history that were written to disk.",
      read: () => history.writtenBytes,
    },
    {
      name: "history_save_failing",
      type: "gauge",
      help: "1 while the history cannot be written to disk.",
      read: () => (history.saveFailure === undefined ? 0 : 1),
    },
  );
}
