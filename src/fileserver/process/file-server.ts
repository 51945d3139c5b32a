// Builds a FileServer from its settings: opens its parts in order and closes them in reverse.
import { join } from "node:path";
import { waiting } from "#base/call-waits.ts";
import { type Clock, systemClock } from "#base/clock.ts";
import { HEARTBEAT_INTERVAL_MS, SESSION_SWEEP_INTERVAL_MS, STOP_GRACE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { formatHostPort } from "#base/node-id.ts";
import { type Random, systemFraction, systemRandom } from "#base/random.ts";
import { currentRequestId } from "#base/request-scope.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { ulid } from "#base/ulid.ts";
import { anyMetaServer } from "#fileserver/control/any-metaserver.ts";
import { openClusterMemory } from "#fileserver/control/cluster-memory.ts";
import { diskSpaceOf, oncePerTurn } from "#fileserver/control/disk-space.ts";
import { type DiskSpace, MetaLink } from "#fileserver/control/meta-link.ts";
import {
  type NodeCertificate,
  openNodeCertificate,
  type TlsSource,
} from "#fileserver/control/node-certificate.ts";
import { claimFor, PersonAdmission } from "#fileserver/control/person-admission.ts";
import { ShareReplicator } from "#fileserver/control/share-replicator.ts";
import { createGrpcFront } from "#fileserver/front/grpc-front.ts";
import { startMetricsListener } from "#fileserver/front/metrics-listener.ts";
import { type NodeMetricsDeps, nodeMetrics } from "#fileserver/front/node-metrics.ts";
import { createFileService, type FileService } from "#fileserver/operations/file-service.ts";
import { OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from "#fileserver/operations/service-limits.ts";
import { ServingState } from "#fileserver/operations/serving-state.ts";
import { TRASH_RETENTION_MS } from "#fileserver/operations/trash-reaper.ts";
import { knownUserStates } from "#fileserver/operations/user-operations.ts";
import { listenWithRetries } from "#os/listen-retry.ts";
import type { StatusServer } from "#os/status-server.ts";
import { QuotaStore } from "#quota/quota-store.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import { type IdentitySettings, requireServable } from "#security/identity/settings.ts";
import { SubjectRegistry } from "#security/identity/subject-registry.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { USER_STATES_FILE, UserStateStore } from "#security/identity/user-state-store.ts";
import { SessionTable } from "#security/sessions/session-table.ts";
import type { RecountSettings } from "#storage/contract/recount-types.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { openStorage } from "#storage/local/open-storage.ts";
import { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { SecurityEvents } from "#telemetry/security-events.ts";
import { GrpcChannel } from "#wire/grpc/client.ts";
import { forwardRequestId } from "#wire/grpc/request-ids.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { adminPasswordOf } from "./password-path.ts";
import { securityEventSink } from "./security-sink.ts";
import { watchStore } from "./store-watch.ts";

/** All settings from outside. */
export interface FileServerOptions {
  readonly dataFolder: string;
  readonly id: string;
  readonly name: string;
  /** gRPC address; port 0 takes a free one, for tests. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Port of the metrics listener: the gRPC port minus 41000, or 0 for a free one, for tests. */
  readonly metricsPort: number;
  /** host:port that clients are sent to; undefined for the bound address. */
  readonly advertise: string | undefined;
  /** host:port of each MetaServer; none for a node that stands alone. */
  readonly metaservers: readonly string[];
  readonly reserveBytes: bigint;
  /** Rate of the scrub and pause between its passes; undefined for never. */
  readonly scrub?: ScrubSettings | undefined;
  /** The same for the recount of counters (D16). */
  readonly recount?: RecountSettings | undefined;
  readonly tls: TlsSource | undefined;
  readonly reflection: boolean;
  readonly passwordPath: boolean;
  readonly identity: IdentitySettings;
  /** PEM of the authority behind the identity provider's certificate; undefined for the public ones. */
  readonly idpCa?: string | undefined;
  /** SVC_METRICS_TOKEN (T8). */
  readonly metricsToken: string | undefined;
  /** How long the trash keeps items, in milliseconds; 0 means until space is needed (D14). */
  readonly trashRetentionMs?: number;
  readonly limits?: Partial<ServiceLimits>;
}

/** The outside world; tests set their own. */
export interface FileServerWorld {
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Free and total bytes at the data folder, now. */
  readonly diskSpace?: () => DiskSpace;
}

/** A FileServer that serves. */
export interface RunningFileServer {
  readonly grpcPort: number;
  readonly metricsPort: number;
  readonly service: FileService;
  readonly storage: Storage;
  readonly telemetry: NodeTelemetry;
  readonly state: ServingState;
  /** Reads the certificate files again now; unusable ones change nothing. */
  reloadCertificate(): Promise<void>;
  /** Refuses new calls, lets running ones finish for graceMs, closes everything. Rejects with what failed. */
  stop(graceMs?: number): Promise<void>;
}

/** Time for running calls to finish; the rest of the grace time is for closing. */
const DRAIN_MS = STOP_GRACE_MS * 0.75;
/** A node counts as missing after 30 s, so the link must reconnect well before. */
const LINK_BACKOFF_MAX_MS = 2_000;
/** Ends silent connections: after a partition TCP alone retries minutes late, and heartbeats wait for it. */
const LINK_KEEPALIVE = { intervalMs: HEARTBEAT_INTERVAL_MS, timeoutMs: HEARTBEAT_INTERVAL_MS } as const;

/** Opens the data folder and serves. A failed later step closes what was opened. */
export async function startFileServer(
  options: FileServerOptions,
  world: FileServerWorld,
): Promise<RunningFileServer> {
  requireServable(options.identity);
  const closers = new AsyncDisposableStack();
  try {
    return await assemble(options, world, closers);
  } catch (error) {
    await closers.disposeAsync().catch((cause: unknown) => {
      world.log.error("not_all_closed", { error: errorText(cause) });
    });
    throw error;
  }
}

/** The opened contents of the data folder, and the state in memory beside it. */
interface Opened {
  readonly storage: Storage;
  readonly quotas: QuotaStore;
  readonly operatorLooks: OperatorLooks;
  readonly subjects: SubjectRegistry;
  readonly userStates: UserStateStore;
  readonly sessions: SessionTable;
  readonly telemetry: NodeTelemetry;
  readonly securityEvents: SecurityEvents;
  readonly onSecurityEvent: SecurityEventSink;
  readonly auditLog: AuditLog;
  readonly state: ServingState;
  readonly diskSpace: () => DiskSpace;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

async function assemble(
  options: FileServerOptions,
  world: FileServerWorld,
  closers: AsyncDisposableStack,
): Promise<RunningFileServer> {
  const opened = await openParts(options, world, closers);
  const { storage, sessions, telemetry, state, log } = opened;
  let link: MetaLink | undefined;
  const admission = admissionOver(options, opened, () => link);
  const service = serviceOver(options, opened, { admission, link: () => link });
  closers.defer(() => service.stop());

  const certificate = await openNodeCertificate(options.tls, options, opened);
  closers.defer(() => certificate?.close());
  const grpc = createGrpcFront({
    tls: certificate?.material,
    reflection: options.reflection,
    telemetry: opened.telemetry,
    slowCallMs: options.limits?.slowCallMs ?? DEFAULT_SERVICE_LIMITS.slowCallMs,
    streamsPerConnection: options.limits?.streamsPerConnection ?? DEFAULT_SERVICE_LIMITS.streamsPerConnection,
    service,
    sessions,
    state,
    onSecurityEvent: opened.onSecurityEvent,
    clock: opened.clock,
    log,
  });
  certificate?.onChange((tls) => grpc.server.updateTls({ ...tls, requestClientCertificate: true }));
  const bound = await listenWithRetries(options.listen, {
    listen: () => grpc.server.listen(options.listen),
    otherwise: "choose another with -listen",
  });
  closers.defer(() => grpc.server.close());
  storage.onFailure((reason) => {
    log.error("storage_failed", { reason });
    grpc.health.setServing(FileServer.typeName, false);
  });
  const metrics = await openMetrics(options, opened, {
    service,
    certDaysLeft: () => certificate?.daysLeft ?? null,
    connections: () => grpc.server.connectionCount(),
    clockSkewMs: () => link?.clockSkewMs ?? null,
    refusal: () => link?.refusal,
  });
  closers.defer(() => metrics.close());
  if (options.metaservers.length > 0) {
    link = await startLink(options, { ...opened, admission, service, bound, certificate }, closers);
  }
  state.serve();
  closers.defer(watchStore(options, opened));
  const reloadCertificate = async (): Promise<void> => certificate?.reload();
  return {
    grpcPort: bound.port,
    metricsPort: metrics.address.port,
    service,
    storage,
    telemetry,
    state,
    reloadCertificate,
    stop: stopOnce(closers, (graceMs) => {
      state.drain();
      link?.beatSoon();
      return grpc.server.drain(graceMs);
    }),
  };
}

/** Drains, then closes everything despite failures; further calls wait for the same end. */
function stopOnce(
  closers: AsyncDisposableStack,
  drain: (graceMs: number) => Promise<void>,
): RunningFileServer["stop"] {
  let stopping: Promise<void> | undefined;
  const end = async (graceMs: number): Promise<void> => {
    closers.defer(() => drain(graceMs));
    await closers.disposeAsync();
  };
  return (graceMs = DRAIN_MS) => (stopping ??= end(graceMs));
}

type LiveReadings = Pick<NodeMetricsDeps, "service" | "certDaysLeft" | "connections" | "clockSkewMs"> & {
  /** Why the MetaServer refuses this node. */
  readonly refusal: () => string | undefined;
};

function openMetrics(options: FileServerOptions, opened: Opened, live: LiveReadings): Promise<StatusServer> {
  const { dataFolder, reserveBytes, listen, metricsPort, identity } = options;
  const { storage, state } = opened;
  return startMetricsListener(
    {
      metrics: nodeMetrics({ ...opened, ...live, dataFolder, reserveBytes, authMock: identity.mock }),
      securityEvents: () => opened.securityEvents.list(),
      audit: (after, limit) => opened.auditLog.read(after, limit),
      // An absent MetaServer is no reason: local roots are served without it. Its refusal is one.
      notReady: () => [
        ...state.reasons(),
        ...[live.refusal() ?? []].flat(),
        ...(storage.failure === undefined ? [] : [`storage failed: ${storage.failure}`]),
      ],
      token: options.metricsToken,
      clock: opened.clock,
      log: opened.log,
    },
    { host: listen.host, port: metricsPort },
  );
}

async function openParts(
  options: FileServerOptions,
  world: FileServerWorld,
  closers: AsyncDisposableStack,
): Promise<Opened> {
  const { log, clock = systemClock, random = systemRandom } = world;
  const securityEvents = new SecurityEvents({ clock, random });
  const storage = await openStorage({ directory: options.dataFolder, clock, random, logger: log });
  closers.defer(() => storage.close());
  // The data folder is this process's own from here on.
  const auditLog = await AuditLog.open({ dataFolder: options.dataFolder, clock, log });
  closers.defer(() => auditLog.close());
  const onSecurityEvent = securityEventSink(securityEvents, auditLog, log);
  const sessions = new SessionTable({
    clock,
    random,
    onSecurityEvent,
    limits: { global: options.limits?.sessions ?? DEFAULT_SERVICE_LIMITS.sessions },
  });
  closers.defer(clock.every(SESSION_SWEEP_INTERVAL_MS, () => sessions.sweep()));
  return {
    storage,
    quotas: await QuotaStore.open({
      dataFolder: options.dataFolder,
      defaultInodeLimit: options.limits?.inodesPerUser ?? DEFAULT_SERVICE_LIMITS.inodesPerUser,
      onRecovered: (reason) => log.error("quota_file_recovered", { reason }),
    }),
    operatorLooks: await OperatorLooks.open(options.dataFolder, { clock, log }),
    subjects: await SubjectRegistry.open(join(options.dataFolder, "subjects.json")),
    userStates: await UserStateStore.open(join(options.dataFolder, USER_STATES_FILE)),
    sessions,
    telemetry: new NodeTelemetry({ clock }),
    securityEvents,
    onSecurityEvent,
    auditLog,
    state: new ServingState(),
    diskSpace: world.diskSpace ?? oncePerTurn(() => diskSpaceOf(options.dataFolder)),
    clock,
    random,
    log,
  };
}

function admissionOver(
  options: FileServerOptions,
  opened: Opened,
  link: () => MetaLink | undefined,
): PersonAdmission {
  return new PersonAdmission({
    ...opened,
    confirm: async (identity) => link()?.claimRoot(identity, { isMissing: false }),
    adminUsername: options.identity.adminEmail,
    audit: (act) => opened.auditLog.append(act),
  });
}

function serviceOver(
  options: FileServerOptions,
  opened: Opened,
  { admission, link }: { readonly admission: PersonAdmission; readonly link: () => MetaLink | undefined },
): FileService {
  const { subjects, clock, log, onSecurityEvent } = opened;
  return createFileService({
    ...opened,
    verifier: createTokenVerifier({ ...options.identity, clock, onSecurityEvent, ca: options.idpCa }),
    admit: (identity) => admission.admit(identity),
    personOf: (username) => subjects.find(username),
    onUserDecided: () => link()?.beatSoon(),
    knowsCluster: () => options.metaservers.length === 0 || link()?.isUpToDate === true,
    claimRoot:
      options.metaservers.length === 0
        ? undefined
        : (user) => waiting("metaserver", claimFor(link(), user, subjects)),
    adminUsername: options.identity.adminEmail,
    adminPassword: adminPasswordOf(options, log),
    freeBytes: () => opened.diskSpace().freeBytes,
    reserveBytes: options.reserveBytes,
    audit: (act) => opened.auditLog.append({ request: currentRequestId(), ...act }),
    trashRetentionMs: options.trashRetentionMs ?? TRASH_RETENTION_MS,
    onRootMade: (owner) => {
      log.info("root_made", { user: owner });
      link()?.beatSoon();
    },
    sharesTold: (owner) => waiting("metaserver", Promise.resolve(link()?.sharesTold(owner))),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
}

interface LinkParts extends Opened {
  readonly admission: PersonAdmission;
  readonly certificate: NodeCertificate | undefined;
  readonly service: FileService;
  readonly bound: { readonly host: string; readonly port: number };
}

async function startLink(
  options: FileServerOptions,
  parts: LinkParts,
  closers: AsyncDisposableStack,
): Promise<MetaLink> {
  const { bound, storage, service, state, certificate, clock, random, log } = parts;
  const channel = new GrpcChannel({
    addresses: options.metaservers,
    ...(certificate === undefined ? {} : { tls: certificate.material }),
    backoff: { maxMs: LINK_BACKOFF_MAX_MS },
    keepalive: LINK_KEEPALIVE,
    interceptors: [forwardRequestId],
    clock,
  });
  closers.defer(() => channel.close());
  certificate?.onChange((tls) => channel.updateTls(tls));
  const client = anyMetaServer(channel);
  const link = new MetaLink({
    client,
    subjectOf: (owner) => parts.subjects.find(owner),
    onRebound: (words) => parts.admission.rebind(words, (owner) => service.usage.of(owner) !== undefined),
    userStates: knownUserStates(parts.userStates, service.users),
    node: {
      id: options.id,
      name: options.name,
      address: options.advertise ?? formatHostPort(bound),
      instanceId: ulid(clock, random),
      dataId: storage.dataId,
      reserveBytes: options.reserveBytes,
    },
    cluster: await openClusterMemory(options.dataFolder),
    shares: new ShareReplicator({ client, fsId: options.id, storage, clock, log }),
    rootCount: () => service.usage.count,
    diskSpace: parts.diskSpace,
    isDraining: () => state.isDraining,
    onFenced: (reason) => {
      log.error("fenced", { reason });
      state.fence(reason);
    },
    clock,
    random: systemFraction,
    log,
  });
  closers.defer(() => link.stop());
  await link.start();
  return link;
}
