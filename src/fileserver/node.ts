// Builds a FileServer from its settings, opens what it needs in order, and takes it down in reverse.
import { statfsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import { SESSION_SWEEP_INTERVAL_MS, STOP_GRACE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { type Random, systemRandom } from "#base/random.ts";
import type { SecurityEventFacts } from "#base/security-event.ts";
import { ulid } from "#base/ulid.ts";
import { createClient, GrpcChannel } from "#grpc/client.ts";
import { HealthService } from "#grpc/health.ts";
import { addReflection } from "#grpc/reflection.ts";
import { GrpcServer } from "#grpc/server.ts";
import { createAdminPassword } from "#identity/admin-password.ts";
import { type IdentitySettings, requireServable } from "#identity/settings.ts";
import { SubjectBook } from "#identity/subject-book.ts";
import { createTokenVerifier } from "#identity/token-verifier.ts";
import { FileServer } from "#proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#proto/gen/grove/v1/meta_server_pb.ts";
import { QuotaBook } from "#quota/quota-book.ts";
import { SessionTable } from "#sessions/session-table.ts";
import { openStorage } from "#storage/open-storage.ts";
import type { Storage } from "#storage/storage.ts";
import { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { SecurityEvents } from "#telemetry/security-events.ts";
import { sessionInterceptor } from "./caller.ts";
import { openClusterMemory } from "./cluster-memory.ts";
import { createFileService, type FileService, type ServiceLimits } from "./file-service.ts";
import { mapError } from "./map-error.ts";
import { type DiskSpace, MetaLink } from "./meta-link.ts";
import { type MetricsListener, startMetricsListener } from "./metrics-listener.ts";
import { nodeMetrics } from "./node-metrics.ts";
import { fileServerRoutes, SESSIONLESS_METHODS } from "./routes.ts";
import { ServingState } from "./serving-state.ts";
import type { TlsMaterial } from "./tls-material.ts";

/** Everything that is set from outside. */
export interface FileServerOptions {
  readonly dataFolder: string;
  readonly id: string;
  readonly name: string;
  /** gRPC address; port 0 takes a free one, for tests. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Port of the metrics listener: the gRPC port minus 41000, or 0 for a free one, for tests. */
  readonly metricsPort: number;
  /** host:port that clients are sent to; undefined for the address that was bound. */
  readonly advertise: string | undefined;
  /** host:port of each MetaServer; none for a node that stands alone. */
  readonly metaservers: readonly string[];
  readonly reserveBytes: bigint;
  readonly tls: TlsMaterial | undefined;
  readonly reflection: boolean;
  readonly passwordPath: boolean;
  readonly identity: IdentitySettings;
  /** PEM of the authority behind the identity provider's certificate; undefined for the public ones. */
  readonly idpCa?: string | undefined;
  /** SVC_METRICS_TOKEN (T8). */
  readonly metricsToken: string | undefined;
  readonly limits?: Partial<ServiceLimits>;
}

/** What the world gives; tests drive their own. */
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
  /** Refuses new calls, lets running ones finish for graceMs, closes everything. */
  stop(graceMs?: number): Promise<void>;
}

const GRPC_SERVICE = FileServer.typeName;

/** Opens the data folder and serves. What was opened is closed again when a later step fails. */
export async function startFileServer(
  options: FileServerOptions,
  world: FileServerWorld,
): Promise<RunningFileServer> {
  requireServable(options.identity);
  const closers: (() => Promise<void> | void)[] = [];
  try {
    return await assemble(options, world, closers);
  } catch (error) {
    for (const close of closers.reverse()) await close();
    throw error;
  }
}

async function assemble(
  options: FileServerOptions,
  world: FileServerWorld,
  closers: (() => Promise<void> | void)[],
): Promise<RunningFileServer> {
  const { log, clock = systemClock, random = systemRandom } = world;
  await mkdir(options.dataFolder, { recursive: true, mode: 0o700 });
  const diskSpace = world.diskSpace ?? (() => diskSpaceOf(options.dataFolder));
  const state = new ServingState();
  const telemetry = new NodeTelemetry({ clock });
  const securityEvents = new SecurityEvents({ clock, random });
  const onSecurityEvent = securityEventSink(securityEvents, log);

  const storage = await openStorage({ directory: options.dataFolder, clock, random, logger: log });
  closers.push(() => storage.close());
  const quotas = await QuotaBook.open({
    dataFolder: options.dataFolder,
    onRecovered: (reason) => log.error("quota_file_recovered", { reason }),
  });
  const subjects = await SubjectBook.open(join(options.dataFolder, "subjects.json"));
  const sessions = new SessionTable({ clock, random, onSecurityEvent });
  closers.push(clock.every(SESSION_SWEEP_INTERVAL_MS, () => sessions.sweep()));

  let link: MetaLink | undefined;
  const service = createFileService({
    storage,
    quotas,
    sessions,
    state,
    verifier: createTokenVerifier({
      ...options.identity,
      clock,
      onSecurityEvent,
      ca: options.idpCa,
    }),
    admit: (identity) => subjects.admit(identity),
    claimRoot: options.metaservers.length === 0 ? undefined : (username) => claim(link, username),
    adminUsername: options.identity.adminEmail,
    adminPassword: options.passwordPath
      ? createAdminPassword({
          ADMIN_PASSWORD_HASH: options.identity.adminPasswordHash,
          ADMIN_PASSWORD: options.identity.adminPassword,
        })
      : undefined,
    telemetry,
    freeBytes: () => diskSpace().freeBytes,
    reserveBytes: options.reserveBytes,
    clock,
    random,
    log,
    onSecurityEvent,
    onRootMade: (owner) => {
      log.info("root_made", { user: owner });
      link?.beatSoon();
    },
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  closers.push(() => service.stop());

  const grpc = createGrpc(options, { service, sessions, state, log });
  const bound = await grpc.server.listen(options.listen);
  closers.push(() => grpc.server.close());
  grpc.follow(state);

  const metrics = await startMetricsListener(
    {
      metrics: nodeMetrics({
        service,
        storage,
        quotas,
        sessions,
        telemetry,
        clock,
        dataFolder: options.dataFolder,
        reserveBytes: options.reserveBytes,
        certificate: options.tls?.cert,
        connections: () => grpc.server.connectionCount(),
        clockSkewMs: () => link?.clockSkewMs ?? null,
      }),
      securityEvents: () => securityEvents.list(),
      notReady: () => [
        ...state.reasons(),
        ...(storage.failure === undefined ? [] : [`storage failed: ${storage.failure}`]),
      ],
      token: options.metricsToken,
      log,
    },
    { host: options.listen.host, port: options.metricsPort },
  );
  closers.push(() => metrics.close());

  storage.onFailure((reason) => {
    log.error("storage_failed", { reason });
    grpc.health.setServing(GRPC_SERVICE, false);
  });
  if (options.metaservers.length > 0) {
    link = await startLink(
      options,
      { bound, storage, service, state, diskSpace, clock, random, log },
      closers,
    );
  }
  state.serve();
  return running({ grpc, metrics, service, storage, telemetry, state, link, grpcPort: bound.port }, closers);
}

function claim(link: MetaLink | undefined, username: string): ReturnType<MetaLink["claimRoot"]> {
  // Calls are taken only after the link is there.
  if (link === undefined) throw new Error("the link to the metaserver is not there yet");
  return link.claimRoot(username);
}

interface GrpcParts {
  readonly service: FileService;
  readonly sessions: SessionTable;
  readonly state: ServingState;
  readonly log: Logger;
}

/** The gRPC server with its services, and the health that follows the state. */
function createGrpc(options: FileServerOptions, parts: GrpcParts) {
  const { service, sessions, state, log } = parts;
  const server = new GrpcServer({
    ...(options.tls === undefined ? {} : { tls: { ...options.tls, requestClientCertificate: true } }),
    interceptors: [
      sessionInterceptor({ sessions, state, service: GRPC_SERVICE, exempt: SESSIONLESS_METHODS }),
    ],
    mapError,
    onError: ({ kind, error, method, peer }) => {
      if (kind === "connection") {
        log.debug("connection_failed", { address: peer?.address, error: errorText(error) });
        return;
      }
      log.error("unexpected_failure", { where: method?.path ?? kind, error: errorText(error) });
    },
  });
  const health = new HealthService();
  health.setServing(GRPC_SERVICE, false);
  health.addTo(server);
  server.addService(FileServer, fileServerRoutes(service));
  if (options.reflection) addReflection(server, [FileServer]);
  const follow = (followed: ServingState): void =>
    followed.onChange((isServing) => {
      health.setServing("", isServing);
      health.setServing(GRPC_SERVICE, isServing);
    });
  health.setServing("", state.isServing);
  return { server, health, follow };
}

interface LinkParts {
  readonly bound: { readonly host: string; readonly port: number };
  readonly storage: Storage;
  readonly service: FileService;
  readonly state: ServingState;
  readonly diskSpace: () => DiskSpace;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

async function startLink(
  options: FileServerOptions,
  parts: LinkParts,
  closers: (() => Promise<void> | void)[],
): Promise<MetaLink> {
  const { bound, storage, service, state, clock, random, log } = parts;
  const channel = new GrpcChannel({
    addresses: options.metaservers,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    clock,
  });
  closers.push(() => channel.close());
  const link = new MetaLink({
    client: createClient(MetaServer, channel),
    node: {
      id: options.id,
      name: options.name,
      address: options.advertise ?? `${bound.host}:${bound.port}`,
      instanceId: ulid(clock, random),
      dataId: storage.dataId,
      reserveBytes: options.reserveBytes,
    },
    cluster: await openClusterMemory(options.dataFolder),
    roots: () => storage.roots(),
    rootCount: () => service.usage.count,
    diskSpace: parts.diskSpace,
    isDraining: () => state.isDraining,
    onFenced: (reason) => {
      log.error("fenced", { reason });
      state.fence(reason);
    },
    clock,
    random: Math.random,
    log,
  });
  closers.push(() => link.stop());
  await link.start();
  return link;
}

interface Running {
  readonly grpc: ReturnType<typeof createGrpc>;
  readonly metrics: MetricsListener;
  readonly service: FileService;
  readonly storage: Storage;
  readonly telemetry: NodeTelemetry;
  readonly state: ServingState;
  readonly link: MetaLink | undefined;
  readonly grpcPort: number;
}

function running(parts: Running, closers: (() => Promise<void> | void)[]): RunningFileServer {
  const { grpc, metrics, service, storage, telemetry, state, link, grpcPort } = parts;
  return {
    grpcPort,
    metricsPort: metrics.port,
    service,
    storage,
    telemetry,
    state,
    async stop(graceMs = STOP_GRACE_MS * 0.75): Promise<void> {
      state.drain();
      void link?.beatNow();
      await grpc.server.drain(graceMs);
      for (const close of closers.reverse()) await close();
    },
  };
}

function securityEventSink(events: SecurityEvents, log: Logger): (facts: SecurityEventFacts) => void {
  return (facts) => {
    const event = events.record(facts);
    log.warn("security_event", {
      id: event.id,
      type: event.type,
      fatal: event.fatal,
      user: event.username,
      ip_bound: event.ip_bound,
      ip_seen: event.ip_seen,
      count: event.count,
    });
  };
}

/** One system call on the superblock in memory: cheap enough for every chunk (D16). */
function diskSpaceOf(folder: string): DiskSpace {
  const { bsize, blocks, bavail } = statfsSync(folder, { bigint: true });
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}
