// The parts of the console that go on by themselves, whether or not somebody asks: polls, history, alerts, the live stream, the audit log.
import { join } from "node:path";
import { Notifier } from "#alerts/notifier.ts";
import { AuditCopies } from "#audit/audit-copies.ts";
import { AuditLog } from "#audit/audit-log.ts";
import { History } from "#history/history.ts";
import { NodeLocks } from "#orchestration/node-locks.ts";
import { holdAlone } from "#os/file-lock.ts";
import { ActionDesk } from "./action-desk.ts";
import { AlertDesk } from "./alert-desk.ts";
import { AuditGathering } from "./audit-gathering.ts";
import { ClusterUsers } from "./cluster-users.ts";
import { ClusterViews } from "./cluster-views.ts";
import { type ClusterWatch, watchCluster } from "./cluster-watch.ts";
import type { ConsoleMetrics } from "./console-metrics.ts";
import type { ConsoleOptions } from "./console-options.ts";
import { DecidedUsers } from "./decided-users.ts";
import { feedHistory } from "./history-feed.ts";
import { HomeNodes } from "./home-nodes.ts";
import { Hub } from "./hub.ts";
import { MaintenanceDesk } from "./maintenance-desk.ts";
import { watchMetaServers } from "./metaserver-events.ts";
import { MetaServerWatch } from "./metaserver-watch.ts";
import { quotaDialer, trashDialer, userStateDialer } from "./node-dial.ts";
import { feedNotices } from "./notice-feed.ts";
import type { OperatorGate } from "./operator-gate.ts";
import { QuotaDesk } from "./quota-desk.ts";
import { RestoredNodes } from "./restored-node.ts";
import { TrashDesk } from "./trash-desk.ts";
import { UserList } from "./user-list.ts";
import { UserStateDesk } from "./user-state-desk.ts";

/** The parts that routes ask. */
export interface ConsoleParts {
  /** The console's own log. */
  readonly audit: AuditLog;
  /** Everybody's, as far as it was gathered. */
  readonly auditCopies: AuditCopies;
  readonly gathering: AuditGathering;
  readonly history: History;
  readonly watch: ClusterWatch;
  readonly metaServers: MetaServerWatch;
  readonly alerts: AlertDesk;
  readonly notifier: Notifier;
  readonly maintenance: MaintenanceDesk;
  readonly users: UserList;
  readonly quotas: QuotaDesk;
  readonly userStates: UserStateDesk;
  readonly userTrash: TrashDesk;
  readonly views: ClusterViews;
  readonly actions: ActionDesk;
  /** Ends before the listener does, so that browsers hear why. */
  readonly hub: Hub;
}

/** Locked by the console that has the folder. */
const LOCK_FILE = "grove.lock";

/** Opens every part; what ends with it is deferred on `ends` as soon as it is there. */
export async function openParts(
  options: ConsoleOptions,
  gate: OperatorGate,
  metrics: ConsoleMetrics,
  ends: AsyncDisposableStack,
): Promise<ConsoleParts> {
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
  const watch = openWatch(options, { notifier, maintenance, locks });
  ends.defer(() => watch.close());
  ends.defer(maintenance.onChange((nodeId) => watch.book.noted(nodeId)));
  const homes = new HomeNodes({ clock, log, directory });
  ends.defer(feedHistory(watch.book, history, homes));
  addPollFigures(metrics, watch);
  addHistoryFigures(metrics, history);
  const metaServers = new MetaServerWatch({ addresses: options.metaServers ?? [], clock, log });
  ends.defer(() => metaServers.close());
  const alerts = await openAlerts(options, gate, { notifier, history, watch, homes, metaServers }, ends);
  const { auditCopies, gathering } = await openGathering(options, { audit, watch, alerts }, ends);
  const people = openUsers(options, { audit, history, watch }, homes);
  ends.defer(() => people.users.close());
  const live = openLive(options, gate, { history, watch, alerts, users: people.users });
  ends.defer(live.end);
  addSocketFigures(metrics, live.hub);
  const desk = await ActionDesk.open({
    options,
    audit,
    alerts,
    notifier,
    watch,
    history,
    locks,
    hub: live.hub,
  });
  ends.defer(() => desk.close());
  // Polls begin when everybody listens. A store that does not answer yet keeps nobody from signing in.
  void watch.start();
  return {
    audit,
    auditCopies,
    gathering,
    history,
    watch,
    metaServers,
    alerts,
    notifier,
    maintenance,
    ...people,
    views: live.views,
    actions: desk,
    hub: live.hub,
  };
}

/** Two consoles would overwrite each other's files, and one would end what the other runs on nodes. Throws DATA_IN_USE. */
function holdFolder(folder: string): () => void {
  return holdAlone(
    join(folder, LOCK_FILE),
    `${folder} is in use by another console; stop that one first, or name another folder with -data`,
  );
}

function openMaintenance(
  { clock, log, pausePlacement }: ConsoleOptions,
  { notifier, audit }: Pick<ConsoleParts, "notifier" | "audit">,
): MaintenanceDesk {
  return new MaintenanceDesk({
    book: notifier.maintenance,
    pausePlacement,
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
    clock,
    log,
  });
}

function openWatch(
  { clock, log, directory, metricsToken, allowNodes, lookup }: ConsoleOptions,
  { notifier, maintenance, locks }: Pick<ConsoleParts, "notifier" | "maintenance"> & { locks: NodeLocks },
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
      };
    },
    ...(lookup === undefined ? {} : { lookup }),
    clock,
    log,
  });
}

async function openAlerts(
  { clock, log, directory, dataFolder }: ConsoleOptions,
  gate: OperatorGate,
  parts: Pick<ConsoleParts, "notifier" | "history" | "watch" | "metaServers"> & { readonly homes: HomeNodes },
  ends: AsyncDisposableStack,
): Promise<AlertDesk> {
  const { notifier, history, watch, metaServers, homes } = parts;
  const alerts = await AlertDesk.open({
    folder: dataFolder,
    clock,
    log,
    cluster: watch.book,
    history,
    homeOf: (username) => homes.ofUser(username),
    metaServers: () => metaServers.readings(),
    isDefaultPassword: () => gate.password.isDefault,
  });
  ends.defer(() => alerts.close());
  ends.defer(feedNotices({ notifier, desk: alerts, cluster: watch.book }));
  ends.defer(watchMetaServers({ directory, alerts, clock, log }));
  for (const damaged of history.damaged) alerts.wasReset(damaged);
  for (const { file, setAsideAs } of notifier.damaged) alerts.wasReset(file, setAsideAs);
  return alerts;
}

async function openGathering(
  { clock, log, dataFolder, store }: ConsoleOptions,
  { audit, watch, alerts }: Pick<ConsoleParts, "audit" | "watch" | "alerts">,
  ends: AsyncDisposableStack,
): Promise<Pick<ConsoleParts, "auditCopies" | "gathering">> {
  const auditCopies = await AuditCopies.open({ dataFolder, clock, log });
  ends.defer(() => auditCopies.close());
  const restored = new RestoredNodes(watch.book, store);
  ends.defer(() => restored.close());
  const gathering = new AuditGathering({
    copies: auditCopies,
    own: audit,
    cluster: watch.book,
    addresses: watch.addresses,
    http: watch.http,
    audit: (act) => audit.append(act),
    onBroken: (occurrence) => void alerts.happened(occurrence),
    onRestored: (found) => void alerts.happened(restored.occurrenceOf(found)),
    clock,
    log,
  });
  ends.defer(() => gathering.close());
  return { auditCopies, gathering };
}

function openUsers(
  { clock, log, directory, nodeAuthority }: ConsoleOptions,
  { audit, history, watch }: Pick<ConsoleParts, "audit" | "history" | "watch">,
  homes: HomeNodes,
): Pick<ConsoleParts, "users" | "quotas" | "userStates" | "userTrash"> {
  const decided = new DecidedUsers({ clock, log, directory });
  const users = new UserList({
    clock,
    cluster: watch.book,
    homes,
    decided,
    fullInDays: (username) => history.forecastUserFullDays(username),
  });
  const quotas = new QuotaDesk({
    clock,
    log,
    cluster: watch.book,
    directory,
    users,
    setQuotaOnNode: quotaDialer(nodeAuthority),
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
  });
  const userStates = new UserStateDesk({
    clock,
    log,
    cluster: watch.book,
    decided,
    setOnNode: userStateDialer(nodeAuthority),
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
  });
  const userTrash = new TrashDesk({
    log,
    cluster: watch.book,
    directory,
    users,
    onNode: trashDialer(nodeAuthority),
    audit: (act) => audit.append(act),
    flushAudit: () => audit.flush(),
  });
  return { users, quotas, userStates, userTrash };
}

function openLive(
  { clock, log }: ConsoleOptions,
  { sessions }: OperatorGate,
  { history, watch, alerts, users }: Pick<ConsoleParts, "history" | "watch" | "alerts" | "users">,
): { views: ClusterViews; hub: Hub; end: () => void } {
  const views = new ClusterViews({
    cluster: watch.book,
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
    watch.book.onRound(() => hub.broadcastSnapshot()),
    alerts.onEvent((event) => hub.alertEvent(event)),
    sessions.onEnd((session) => hub.endSession(session)),
  ];
  return { views, hub, end: () => ends.forEach((end) => end()) };
}

function addPollFigures(metrics: ConsoleMetrics, { book, poller }: ClusterWatch): void {
  const counter = (name: string, help: string, read: () => number): void =>
    metrics.add({ name, type: "counter", help, read });
  counter("polls_answered", "Polls of nodes that were answered.", () => poller.counts.answered);
  counter("polls_failed", "Polls of nodes that counted as no answer.", () => poller.counts.failed);
  counter("polls_missed", "Polls that did not begin in time.", () => poller.counts.missed);
  metrics.add({
    name: "nodes",
    type: "gauge",
    help: "Nodes that are known.",
    read: () => book.nodes().length,
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
