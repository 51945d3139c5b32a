// The MetaServer: joins store, verification and routes to one gRPC port.
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { IP_MISMATCH_EVENT_INTERVAL_MS, STOP_GRACE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import { networkOf } from "#base/network.ts";
import type { Random } from "#base/random.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { listenWithRetries } from "#os/listen-retry.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { ServerInterceptor, ServiceHandlers } from "#wire/grpc/handler.ts";
import { HealthService } from "#wire/grpc/health.ts";
import type { ServerTls } from "#wire/grpc/http-server.ts";
import { addReflection } from "#wire/grpc/reflection.ts";
import { requestIds } from "#wire/grpc/request-ids.ts";
import { GrpcServer, type ListenAddress } from "#wire/grpc/server.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { RootMoves } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import type { Administrators } from "./administrator.ts";
import { AppPasswords } from "./app-passwords.ts";
import { metaServerGate, REQUEST_LIMITS, USUAL_REQUEST } from "./call-gate.ts";
import type { MetaCertificates } from "./certificates.ts";
import { controlRoutes } from "./control-routes.ts";
import { credentialRoutes } from "./credential-routes.ts";
import { doorSessionRoutes } from "./door-session-routes.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import { enrolmentRoutes } from "./enrolment-routes.ts";
import { GroupGate } from "./group-gate.ts";
import { groupRoutes } from "./group-routes.ts";
import { KnownNodes } from "./known-nodes.ts";
import type { KnownNodesFile } from "./known-nodes-file.ts";
import { linkRoutes } from "./link-routes.ts";
import type { NodeSpeakerDeps } from "./node-speaker.ts";
import { noticeRoutes } from "./notice-routes.ts";
import { rootMoveRoutes } from "./root-move-routes.ts";
import { SubjectGate } from "./subject-gate.ts";
import type { TicketSigner } from "./ticket-signer.ts";
import { type UserRoutesDeps, userRoutes } from "./user-routes.ts";
import { UserStateGate } from "./user-state-gate.ts";
import { userStateRoutes } from "./user-state-routes.ts";

/** Dependencies of a MetaServer. */
export interface MetaServerDeps {
  readonly directory: Directory;
  readonly tokenVerifier: TokenVerifier;
  /** Of ID tokens for doors; undefined where people cannot sign in at doors. */
  readonly doorTokens?: TokenVerifier | undefined;
  /** The ways to prove administrator rights here; undefined when there are none. */
  readonly administrators?: Administrators | undefined;
  readonly rememberCluster: (clusterId: string) => Promise<void>;
  /** Survives a loss of the store. */
  readonly knownNodes: KnownNodesFile;
  /** Receives what no other process notes: app passwords, groups, sign-ins at doors, certificates (D24). */
  readonly audit: AuditSink;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listen: ListenAddress;
  /** A second address for nodes alone, which refuses callers without a node's certificate. */
  readonly controlListen?: ListenAddress | undefined;
  /** Certificates; the client's is requested, not required, so that users share the port (spec 5.6). */
  readonly tls?: Omit<ServerTls, "requestClientCertificate"> | undefined;
  /** Renews them and signs those of nodes; undefined for certificates that never change. */
  readonly certificates?: MetaCertificates | undefined;
  /** The administrator named to users whose address is another person's; undefined when there is none. */
  readonly adminEmail?: string | undefined;
  /** Mock mode: control calls need no certificate (spec 5.6, 5.7). */
  readonly mock: boolean;
  readonly reflection: boolean;
  /** Signs tickets for doors. */
  readonly ticketSigner: TicketSigner;
  /** Where WebDAV programs come in, for people to be told. */
  readonly webdavUrl?: string | undefined;
  readonly random: Random;
  /** Claim of the ID token with the names of a person's groups; undefined where none makes members. */
  readonly groupsClaim?: string | undefined;
}

/** A MetaServer that listens. */
export interface RunningMetaServer {
  /** With the port that was taken. */
  readonly address: ListenAddress;
  readonly controlAddress: ListenAddress | undefined;
  /** Finishes the calls in progress, then closes port and store; who asks again waits for the same end. */
  stop(): Promise<void>;
}

/** Listens and answers `grpc.health.v1` for the service and for the whole. */
export async function startMetaServer(deps: MetaServerDeps): Promise<RunningMetaServer> {
  const { directory, log, tls, certificates } = deps;
  const speakerDeps = {
    ...deps,
    refusals: new LogSampler(deps.clock),
    isRevoked: (serial: string) => certificates?.revocations?.isRevoked(serial) === true,
  };
  const refusals = refusalLog(deps);
  const server = new GrpcServer({
    ...(tls === undefined ? {} : { tls: { ...tls, requestClientCertificate: true } }),
    clock: deps.clock,
    gate: metaServerGate({ ...speakerDeps, onRefused: refusals.refused }),
    interceptors: [requestIds, refusals.interceptor],
    mapError,
    onError: ({ kind, error, method }) => {
      if (kind === "overload") log.warn("connections_turned_away", { reason: errorText(error) });
      else {
        const level = kind === "connection" ? "debug" : "error";
        log[level](`${kind}_failed`, { method: method?.path, error: errorText(error) });
      }
    },
  });
  certificates?.onChange((material) => server.updateTls({ ...material, requestClientCertificate: true }));
  const subjects = new SubjectGate(deps);
  const knownNodes = new KnownNodes({ ...deps, file: deps.knownNodes });
  const userStates = new UserStateGate(deps);
  const groups = new GroupGate({ ...deps, userStates });
  const routes = routesOver(deps, speakerDeps, { subjects, userStates, knownNodes, groups });
  server.addService(MetaServer, routes, { requests: REQUEST_LIMITS, otherRequests: USUAL_REQUEST });
  server.addService(RootMoves, rootMoveRoutes({ ...deps, ...speakerDeps }), { otherRequests: USUAL_REQUEST });
  const health = new HealthService();
  health.addTo(server);
  const unwatch = directory.watch((state) => {
    health.setServing(MetaServer.typeName, state.available);
    if (state.available) {
      log.info("store_available");
      rememberFoundCluster(deps);
      void knownNodes.compare();
    } else log.warn("store_unavailable", { reason: state.reason });
  });
  if (deps.reflection) addReflection(server, [MetaServer, RootMoves, Health]);
  void directory.failed.then((error) => {
    log.error("store_failed", { error: errorText(error) });
    setServing(health, false);
  });
  // Before the first user comes, if the store answers by now.
  await knownNodes.compare();
  await userStates.look();
  await groups.look();
  const address = await listen(server, deps.listen, false);
  const controlAddress =
    deps.controlListen === undefined ? undefined : await listen(server, deps.controlListen, true);
  const ends = new AsyncDisposableStack();
  ends.defer(() => directory.close());
  ends.defer(() => server.drain(STOP_GRACE_MS / 2));
  ends.defer(() => setServing(health, false));
  ends.defer(() => userStates.stop());
  ends.defer(() => groups.stop());
  ends.defer(() => knownNodes.stop());
  ends.defer(unwatch);
  let stopping: Promise<void> | undefined;
  return {
    address,
    controlAddress,
    stop: () => (stopping ??= ends.disposeAsync()),
  };
}

/** All methods of the service. */
function routesOver(
  deps: MetaServerDeps,
  speakerDeps: NodeSpeakerDeps,
  gates: {
    readonly subjects: SubjectGate;
    readonly userStates: UserStateGate;
    readonly knownNodes: KnownNodes;
    readonly groups: GroupGate;
  },
): Partial<ServiceHandlers<typeof MetaServer>> {
  const { knownNodes, ...entry } = gates;
  const { certificates, ticketSigner: signer } = deps;
  const passwords = new AppPasswords({ ...deps, ...speakerDeps, ...entry });
  const identifyAtDoor: UserRoutesDeps["identifyAtDoor"] = (text, context) =>
    passwords.identify(text, doorSpeakerFor(context, speakerDeps));
  return {
    ...userRoutes({ ...deps, ...entry, identifyAtDoor }),
    ...doorSessionRoutes({
      ...deps,
      ...speakerDeps,
      ...entry,
      passwords,
      doorTokens: deps.doorTokens,
    }),
    ...linkRoutes({ ...deps, ...speakerDeps }),
    ...credentialRoutes({ ...deps, ...speakerDeps, ...entry, passwords, signer }),
    ...userStateRoutes({ ...deps, ...speakerDeps, ...entry }),
    ...groupRoutes({ ...deps, ...speakerDeps, ...entry }),
    ...noticeRoutes({ ...deps, ...speakerDeps, ...entry }),
    ...controlRoutes({
      ...deps,
      ...speakerDeps,
      ...entry,
      rememberNode: (fsId: string) => knownNodes.registered(fsId),
    }),
    ...enrolmentRoutes({
      ...deps,
      ...speakerDeps,
      authority: certificates?.authority,
      isOwnName: (name) => certificates?.isOwnName(name) ?? false,
    }),
  };
}

async function listen(
  server: GrpcServer,
  address: ListenAddress,
  nodesOnly: boolean,
): Promise<ListenAddress> {
  try {
    return await listenWithRetries(address, {
      listen: () => server.listen(address, { nodesOnly }),
      otherwise: `choose another with ${nodesOnly ? "-control_listen" : "-listen"}`,
    });
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** Remembers the id of a cluster whose registrations may all go to other MetaServers. */
function rememberFoundCluster({ directory, rememberCluster, log }: MetaServerDeps): void {
  directory
    .clusterId()
    .then((clusterId) => (clusterId === undefined ? undefined : rememberCluster(clusterId)))
    .catch((error: unknown) => log.warn("cluster_id_not_kept", { error: errorText(error) }));
}

function setServing(health: HealthService, isServing: boolean): void {
  for (const service of ["", MetaServer.typeName]) health.setServing(service, isServing);
}

/** Security events of the control plane: a caller may not speak for a node, or its id is held (M-02). */
const SECURITY_EVENTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  CLIENT_CERT_REQUIRED: "unknown_cert",
  NODE_ID_HELD: "node_id_held",
};

/** Receives refused calls. */
interface RefusalLog {
  readonly refused: (head: CallHead, error: unknown) => void;
  readonly interceptor: ServerInterceptor;
}

/** Logs refusals by reason, few lines of each kind, without tokens. Callers' own ones are debug lines. */
function refusalLog({ log, clock }: Pick<MetaServerDeps, "log" | "clock">): RefusalLog {
  const sampler = new LogSampler(clock);
  // A refused node comes back every five seconds: one event per reason and address in ten minutes suffices.
  const events = new SlidingWindow(clock, { count: 1, windowMs: IP_MISMATCH_EVENT_INTERVAL_MS });
  const refused = ({ method, peer }: CallHead, error: unknown): void => {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!isGroveError(cause)) return;
    const { address } = peer;
    const sampled = sampler.take(`${cause.code} ${method.name} ${networkOf(address)}`);
    if (sampled !== undefined) {
      const fields = { method: method.name, peer: address, reason: cause.code, error: errorText(cause) };
      log[isGroveError(cause, ...OURS) ? "warn" : "debug"]("call_refused", { ...fields, ...sampled });
    }
    const type = SECURITY_EVENTS[cause.code];
    if (type !== undefined && events.take(`${type} ${address}`) === 0) {
      log.warn("security_event", { type, fatal: false, ip_seen: address, method: method.name });
    }
  };
  const interceptor: ServerInterceptor = async (context, next) => {
    try {
      await next();
    } catch (error) {
      refused(context, error);
      throw error;
    }
  };
  return { refused, interceptor };
}

/** Refusals that are this server's fault, or its operator's. */
const OURS: readonly ErrorCode[] = ["STORE_UNAVAILABLE", "OVERLOADED", "INTERNAL", "NODE_ID_HELD", "FENCED"];
