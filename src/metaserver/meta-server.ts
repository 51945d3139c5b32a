// The MetaServer: joins store, verification and routes to one gRPC port.
import type { Clock } from "#base/clock.ts";
import { type ErrorCode, GroveError, isGroveError } from "#base/errors.ts";
import { IP_MISMATCH_EVENT_INTERVAL_MS, STOP_GRACE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { formatHostPort } from "#base/node-id.ts";
import type { Directory } from "#directory/directory.ts";
import { Health } from "#grpc/gen/grpc/health/v1/health_pb.ts";
import type { ServerInterceptor } from "#grpc/handler.ts";
import { HealthService } from "#grpc/health.ts";
import { addReflection } from "#grpc/reflection.ts";
import { requestIds } from "#grpc/request-ids.ts";
import { GrpcServer, type ListenAddress, type ServerTls } from "#grpc/server.ts";
import { RateLimiter } from "#identity/rate-limiter.ts";
import type { TokenVerifier } from "#identity/token-verifier.ts";
import { MetaServer } from "#proto/gen/grove/v1/meta_server_pb.ts";
import type { MetaCertificates } from "./certificates.ts";
import { controlRoutes } from "./control-routes.ts";
import { enrolmentRoutes } from "./enrolment-routes.ts";
import { mapError } from "./map-error.ts";
import { SubjectGate } from "./subject-gate.ts";
import { userRoutes } from "./user-routes.ts";

/** What a MetaServer is made from. */
export interface MetaServerDeps {
  readonly directory: Directory;
  readonly tokenVerifier: TokenVerifier;
  readonly rememberCluster: (clusterId: string) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listen: ListenAddress;
  /** Certificates; the client's is asked for, not required, so that users come over the same port (spec 5.6). */
  readonly tls?: Omit<ServerTls, "requestClientCertificate"> | undefined;
  /** Keeps them fresh and signs others'; undefined for certificates that never change. */
  readonly certificates?: MetaCertificates | undefined;
  /** Mock mode: control calls need no certificate (spec 5.6, 5.7). */
  readonly mock: boolean;
  readonly reflection: boolean;
}

/** A MetaServer that listens. */
export interface RunningMetaServer {
  /** With the port that was taken. */
  readonly address: ListenAddress;
  /** Finishes the calls in progress, then closes port and store. */
  stop(): Promise<void>;
}

/** Listens and answers `grpc.health.v1` for the service and for the whole. */
export async function startMetaServer(deps: MetaServerDeps): Promise<RunningMetaServer> {
  const { directory, log, tls, certificates } = deps;
  const server = new GrpcServer({
    ...(tls === undefined ? {} : { tls: { ...tls, requestClientCertificate: true } }),
    clock: deps.clock,
    interceptors: [requestIds, logRefusals(deps)],
    mapError,
    onError: ({ kind, error, method }) =>
      log[kind === "connection" ? "debug" : "error"](`${kind}_failed`, {
        method: method?.path,
        error: errorText(error),
      }),
  });
  certificates?.onChange((material) => server.updateTls({ ...material, requestClientCertificate: true }));
  const subjects = new SubjectGate(deps);
  const speakerDeps = {
    ...deps,
    subjects,
    isRevoked: (serial: string) => certificates?.revocations?.isRevoked(serial) === true,
  };
  server.addService(MetaServer, {
    ...userRoutes({ ...deps, subjects }),
    ...controlRoutes(speakerDeps),
    ...enrolmentRoutes({
      ...speakerDeps,
      authority: certificates?.authority,
      isOwnName: (name) => certificates?.isOwnName(name) ?? false,
    }),
  });
  const health = new HealthService();
  health.addTo(server);
  const unwatch = directory.watch((state) => {
    health.setServing(MetaServer.typeName, state.available);
    if (state.available) {
      log.info("store_available");
      rememberFoundCluster(deps);
    } else log.warn("store_unavailable", { reason: state.reason });
  });
  if (deps.reflection) addReflection(server, [MetaServer, Health]);
  void directory.failed.then((error) => {
    log.error("store_failed", { error: errorText(error) });
    setServing(health, false);
  });
  const address = await server.listen(deps.listen).catch((cause: unknown) => {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    throw new GroveError("BAD_ARGUMENT", `cannot listen on ${formatHostPort(deps.listen)}: ${code}`, {
      cause,
    });
  });
  return {
    address,
    async stop(): Promise<void> {
      unwatch();
      setServing(health, false);
      await server.drain(STOP_GRACE_MS / 2);
      await directory.close();
    },
  };
}

/** This MetaServer may never see a registration where others serve the same store. */
function rememberFoundCluster({ directory, rememberCluster, log }: MetaServerDeps): void {
  directory
    .clusterId()
    .then((clusterId) => (clusterId === undefined ? undefined : rememberCluster(clusterId)))
    .catch((error: unknown) => log.warn("cluster_id_not_kept", { error: errorText(error) }));
}

function setServing(health: HealthService, isServing: boolean): void {
  for (const service of ["", MetaServer.typeName]) health.setServing(service, isServing);
}

/** Refusals of the control plane that an operator should see: somebody speaks for a node who may not, or holds its id (F-02). */
const SECURITY_EVENTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  CLIENT_CERT_REQUIRED: "unknown_cert",
  NODE_ID_HELD: "node_id_held",
};

/** One line for each refusal: its reason, never the token that came with it. Callers' own refusals are for who looks closely: a log must not grow with them. */
function logRefusals({ log, clock }: Pick<MetaServerDeps, "log" | "clock">): ServerInterceptor {
  // A refused node comes back every five seconds: one event for each reason and address in ten minutes is enough to be seen.
  const events = new RateLimiter(clock, { count: 1, windowMs: IP_MISMATCH_EVENT_INTERVAL_MS });
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      if (isGroveError(cause)) {
        const isOurs = isGroveError(
          cause,
          "STORE_UNAVAILABLE",
          "OVERLOADED",
          "INTERNAL",
          "NODE_ID_HELD",
          "FENCED",
        );
        log[isOurs ? "warn" : "debug"]("call_refused", {
          method: context.method.name,
          peer: context.peer.address,
          reason: cause.code,
          error: errorText(cause),
        });
        const type = SECURITY_EVENTS[cause.code];
        const { address } = context.peer;
        if (type !== undefined && events.take(`${type} ${address}`) === 0) {
          log.warn("security_event", { type, fatal: false, ip_seen: address, method: context.method.name });
        }
      }
      throw error;
    }
  };
}
