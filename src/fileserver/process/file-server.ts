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
import { AddressChanges } from "#fileserver/control/address-changes.ts";
import { anyMetaServer } from "#fileserver/control/any-metaserver.ts";
import { openClusterMemory } from "#fileserver/control/cluster-memory.ts";
import { diskSpaceOf, oncePerTurn } from "#fileserver/control/disk-space.ts";
import { type DiskSpace, MetaLink } from "#fileserver/control/meta-link.ts";
import { type NodeCertificate, openNodeCertificate } from "#fileserver/control/node-certificate.ts";
import { claimFor, PersonAdmission, type PersonAdmissionDeps } from "#fileserver/control/person-admission.ts";
import { ShareReplicator } from "#fileserver/control/share-replicator.ts";
import { allSessions } from "#fileserver/doors/all-sessions.ts";
import { createGrpcFront, type GrpcFront } from "#fileserver/front/grpc-front.ts";
import { createFileService, type FileService } from "#fileserver/operations/file-service.ts";
import type { MovingRoots } from "#fileserver/operations/moving-roots.ts";
import { OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import { DEFAULT_SERVICE_LIMITS } from "#fileserver/operations/service-limits.ts";
import { ServingState } from "#fileserver/operations/serving-state.ts";
import { TRASH_RETENTION_MS } from "#fileserver/operations/trash-reaper.ts";
import { knownUserStates } from "#fileserver/operations/user-operations.ts";
import { listenWithRetries } from "#os/listen-retry.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import type { KnownGroups } from "#security/identity/known-groups.ts";
import { requireServable } from "#security/identity/sign-in-variables.ts";
import { SubjectRegistry } from "#security/identity/subject-registry.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { USER_STATES_FILE, UserStateStore } from "#security/identity/user-state-store.ts";
import { SessionTable } from "#security/sessions/session-table.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { SecurityEvents } from "#telemetry/security-events.ts";
import { GrpcChannel } from "#wire/grpc/client.ts";
import { forwardRequestId } from "#wire/grpc/request-ids.ts";
import type { ListenAddress } from "#wire/grpc/server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type DoorParts, openDoors } from "./door-parts.ts";
import type { FileServerOptions, FileServerWorld } from "./file-server-options.ts";
import { groupReaderOf, openGroups } from "./group-parts.ts";
import { NodeMoves } from "./node-moves.ts";
import { adminPasswordOf } from "./node-password.ts";
import { type NodeStorage, openNodeStorage } from "./node-storage.ts";
import { openMetrics } from "./open-metrics.ts";
import { securityEventSink } from "./security-sink.ts";
import { watchStore } from "./store-watch.ts";

/** A FileServer that serves. */
export interface RunningFileServer {
  readonly grpcPort: number;
  readonly metricsPort: number;
  readonly service: FileService;
  readonly storage: Storage;
  readonly telemetry: NodeTelemetry;
  readonly state: ServingState;
  /** Rejects when the process may not go on, and must be started anew. */
  readonly ended: Promise<void> | undefined;
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
interface Opened extends NodeStorage {
  readonly operatorLooks: OperatorLooks;
  readonly subjects: SubjectRegistry;
  readonly userStates: UserStateStore;
  readonly groups: KnownGroups;
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
  const { storage, telemetry, state, log } = opened;
  let link: MetaLink | undefined;

  const certificate = await openNodeCertificate(options.tls, options, opened);
  closers.defer(() => certificate?.close());
  const { mock } = options.identity;
  const doors = openDoors({ ...options, mock }, { ...opened, certificate }, closers);
  const sessions = allSessions(opened.sessions, doors.doors.table);
  const admission = admissionOver(options, { ...opened, sessions }, () => link);
  const moves = movesOver(options, opened);
  const addresses = new AddressChanges({
    ...opened,
    sessions,
    usage: () => service.usage,
    removals: () => service.removals,
    audit: (act) => opened.auditLog.append(act),
  });
  const parts = { admission, link: () => link, moves: addresses.pausing(moves.source) };
  const service: FileService = serviceOver(options, { ...opened, ...doors }, parts);
  closers.defer(() => service.stop());
  opened.follow(service, () => link?.beatSoon("registration"));
  const { grpc, bound } = await frontOver(options, opened, { certificate, service, moves });
  closers.defer(() => grpc.server.close());
  storage.onFailure((reason) => {
    log.error("storage_failed", { reason });
    grpc.health.setServing(FileServer.typeName, false);
  });
  const metrics = await openMetrics(
    options,
    { ...opened, sessions },
    {
      service,
      certDaysLeft: () => certificate?.daysLeft ?? null,
      connections: () => grpc.server.connectionCount(),
      clockSkewMs: () => link?.clockSkewMs ?? null,
      refusal: () => link?.refusal,
    },
  );
  closers.defer(() => metrics.close());
  if (options.metaservers.length > 0) {
    link = await startLink(
      options,
      { ...opened, addresses, admission, service, bound, certificate, moves },
      closers,
    );
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
    ended: opened.ended,
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

async function openParts(
  options: FileServerOptions,
  world: FileServerWorld,
  closers: AsyncDisposableStack,
): Promise<Opened> {
  const { log, clock = systemClock, random = systemRandom } = world;
  const securityEvents = new SecurityEvents({ clock, random });
  const diskSpace = world.diskSpace ?? oncePerTurn(() => diskSpaceOf(options.dataFolder));
  const data = await openNodeStorage(options, { clock, random, log, diskSpace });
  closers.defer(() => data.storage.close());
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
  const userStates = await UserStateStore.open(join(options.dataFolder, USER_STATES_FILE), { clock, log });
  return {
    ...data,
    operatorLooks: await OperatorLooks.open(options.dataFolder, { clock, log }),
    subjects: await SubjectRegistry.open(join(options.dataFolder, "subjects.json"), { clock, log }),
    userStates,
    groups: await openGroups(options.dataFolder, { userStates, clock, log }, closers),
    sessions,
    telemetry: new NodeTelemetry({ clock }),
    securityEvents,
    onSecurityEvent,
    auditLog,
    state: new ServingState(),
    diskSpace,
    clock,
    random,
    log,
  };
}

/** The gRPC server, listening. */
async function frontOver(
  options: FileServerOptions,
  opened: Opened,
  parts: {
    readonly certificate: NodeCertificate | undefined;
    readonly service: FileService;
    readonly moves: NodeMoves;
  },
): Promise<{ readonly grpc: GrpcFront; readonly bound: ListenAddress }> {
  const { certificate, service, moves } = parts;
  const { slowCallMs, streamsPerConnection } = { ...DEFAULT_SERVICE_LIMITS, ...options.limits };
  const grpc = createGrpcFront({
    ...opened,
    tls: certificate?.material,
    reflection: options.reflection,
    loops: options.loops ?? 1,
    slowCallMs,
    streamsPerConnection,
    service,
    rootSource: moves,
    audit: (act) => opened.auditLog.append({ request: currentRequestId(), ...act }),
  });
  certificate?.onChange((tls) => grpc.server.updateTls({ ...tls, requestClientCertificate: true }));
  const bound = await listenWithRetries(options.listen, {
    listen: () => grpc.server.listen(options.listen),
    otherwise: "choose another with -listen",
  });
  return { grpc, bound };
}

/** Without TLS no node has a certificate: then a move's secret alone proves its target. */
function movesOver(options: FileServerOptions, opened: Opened): NodeMoves {
  const { reserveBytes, identity, tls } = options;
  return new NodeMoves({ ...opened, reserveBytes, mock: identity.mock && tls === undefined });
}

function admissionOver(
  options: FileServerOptions,
  opened: Omit<Opened, "sessions"> & Pick<PersonAdmissionDeps, "sessions">,
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
  opened: Opened & DoorParts,
  {
    admission,
    link,
    moves,
  }: {
    readonly admission: PersonAdmission;
    readonly link: () => MetaLink | undefined;
    readonly moves: MovingRoots;
  },
): FileService {
  const { subjects, clock, log, onSecurityEvent } = opened;
  return createFileService({
    ...opened,
    verifier: createTokenVerifier({ ...options.identity, clock, onSecurityEvent, ca: options.idpCa }),
    admit: (identity) => admission.admit(identity),
    personOf: (username) => subjects.find(username),
    moves,
    onUserDecided: () => link()?.beatSoon(),
    knowsCluster: () => options.metaservers.length === 0 || link()?.isUpToDate === true,
    claimRoot:
      options.metaservers.length === 0
        ? undefined
        : (user, options) => waiting("metaserver", claimFor(link(), user, subjects, options)),
    adminUsername: options.identity.adminEmail,
    adminPassword: adminPasswordOf(options, log),
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
  readonly addresses: AddressChanges;
  readonly admission: PersonAdmission;
  readonly certificate: NodeCertificate | undefined;
  readonly service: FileService;
  readonly moves: NodeMoves;
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
    onRebound: (words) =>
      parts.addresses.hear(words, parts.admission, (owner) => service.usage.of(owner) !== undefined),
    userStates: knownUserStates(parts.userStates, service.users),
    groups: groupReaderOf(parts, { client, fsId: options.id, service }),
    node: {
      id: options.id,
      name: options.name,
      address: options.advertise ?? formatHostPort(bound),
      instanceId: ulid(clock, random),
      dataId: storage.dataId,
      reserveBytes: options.reserveBytes,
      onEngine: options.engine !== undefined,
    },
    cluster: await openClusterMemory(options.dataFolder, parts.joined),
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
  parts.moves.start({
    service,
    channel,
    certificate,
    node: () => (link.epoch === undefined ? undefined : { fsId: options.id, epoch: link.epoch }),
    onChange: () => link.beatSoon(),
  });
  closers.defer(() => parts.moves.stop());
  return link;
}
