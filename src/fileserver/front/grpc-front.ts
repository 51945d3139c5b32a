// The gRPC server of a FileServer: its services, the session check of each call, and health by its state.

import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import type { ServingState } from "#fileserver/operations/serving-state.ts";
import type { TlsMaterial } from "#security/authority/tls-material.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "#wire/framing/gen/grpc/reflection/v1/reflection_pb.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import { HealthService } from "#wire/grpc/health.ts";
import { addReflection, REFLECTION_NAMES } from "#wire/grpc/reflection.ts";
import { requestIds } from "#wire/grpc/request-ids.ts";
import { GrpcServer, type GrpcServerOptions, type ServerErrorEvent } from "#wire/grpc/server.ts";
import { LoopServer, type LoopServerOptions } from "#wire/loops/loop-server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import { fileServerGate } from "./call-gate.ts";
import { callLog } from "./call-log.ts";
import { certificateWatch } from "./certificate-watch.ts";
import { LoopHealth, startLoopThread } from "./loop-threads.ts";
import { CALL_COSTS, REQUEST_LIMITS, SOURCE_REQUESTS, USUAL_REQUEST } from "./request-limits.ts";
import { fileServerRoutes, PASSWORD_METHODS, SESSIONLESS_METHODS } from "./routes.ts";
import { slowCalls } from "./slow-calls.ts";

/** Dependencies of the front. */
export interface GrpcFrontDeps {
  readonly tls: TlsMaterial | undefined;
  readonly reflection: boolean;
  /** Event loops that serve connections: 1 for this thread, more for as many threads beside it. */
  readonly loops: number;
  /** Calls at once on one connection (D17). */
  readonly streamsPerConnection: number;
  readonly telemetry: NodeTelemetry;
  /** Calls that take longer are logged, in milliseconds. */
  readonly slowCallMs: number;
  readonly service: FileService;
  /** The routes for nodes that fetch roots from here; left out, there are none. */
  readonly rootSource?: {
    readonly routes: ServiceHandlers<typeof RootSource>;
    readonly mock: boolean;
  };
  readonly state: ServingState;
  readonly onSecurityEvent: SecurityEventSink;
  readonly audit: AuditSink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A server that does not listen yet, with its health. */
export interface GrpcFront {
  readonly server: Pick<GrpcServer, "listen" | "updateTls" | "connectionCount" | "drain" | "close">;
  readonly health: Pick<HealthService, "setServing">;
}

/** Assembles the server; health is NOT_SERVING until the state says otherwise. */
export function createGrpcFront(deps: GrpcFrontDeps): GrpcFront {
  const { service, state, log } = deps;
  const watchCertificate = certificateWatch(deps.onSecurityEvent, deps.clock);
  const calls = callLog({
    log,
    meter: service.meter,
    clock: deps.clock,
    peers: service.callers.peers,
    audit: deps.audit,
  });
  const slow = slowCalls({ ...deps, thresholdMs: deps.slowCallMs });
  const options = {
    ...(deps.tls === undefined ? {} : { tls: { ...deps.tls, requestClientCertificate: true } }),
    limits: { maxConcurrentStreams: deps.streamsPerConnection },
    gate: fileServerGate({
      callers: service.callers,
      state,
      service: FileServer.typeName,
      nodes: { service: RootSource.typeName, mock: deps.rootSource?.mock === true, clock: deps.clock },
      exempt: SESSIONLESS_METHODS,
      byPassword: PASSWORD_METHODS,
      onCall: ({ peer }) => watchCertificate(peer),
      onRefused: calls.refused,
    }),
    interceptors: [requestIds, slow, calls.interceptor],
    mapError,
    onError: ({ kind, error, method, peer }: ServerErrorEvent) => {
      if (kind === "connection") {
        log.debug("connection_failed", { address: peer?.address, error: errorText(error) });
      } else if (kind === "overload") {
        log.warn("connections_turned_away", { reason: errorText(error) });
      } else {
        log.error("unexpected_failure", { where: method?.path ?? kind, error: errorText(error) });
      }
    },
  };
  const front = deps.loops === 1 ? frontOfOne(deps, options) : frontOfSeveral(deps, options);
  const follow = (isServing: boolean): void => {
    front.health.setServing("", isServing);
    front.health.setServing(FileServer.typeName, isServing);
  };
  follow(state.isServing);
  state.onChange(follow);
  return front;
}

const SERVICE = { requests: REQUEST_LIMITS, otherRequests: USUAL_REQUEST, costs: CALL_COSTS } as const;

function frontOfOne(deps: GrpcFrontDeps, options: GrpcServerOptions): GrpcFront {
  const server = new GrpcServer(options);
  const health = new HealthService();
  health.addTo(server);
  server.addService(FileServer, fileServerRoutes(deps.service), SERVICE);
  if (deps.rootSource !== undefined) {
    server.addService(RootSource, deps.rootSource.routes, SOURCE_REQUESTS);
  }
  if (deps.reflection) addReflection(server, [FileServer, RootSource, Health]);
  return { server, health };
}

type SharedOptions = GrpcServerOptions & Pick<LoopServerOptions, "gate" | "interceptors">;

function frontOfSeveral(
  { loops, reflection, service, rootSource, log }: GrpcFrontDeps,
  options: SharedOptions,
): GrpcFront {
  const server = new LoopServer({
    ...options,
    loops,
    spawn: (start) => startLoopThread({ start, reflection }),
    onThreadEnd: (error) => log.error("loop_ended", { error: errorText(error) }),
  });
  server.addService(FileServer, fileServerRoutes(service), SERVICE);
  if (rootSource !== undefined) server.addService(RootSource, rootSource.routes, SOURCE_REQUESTS);
  // Health and reflection answer in the loops; their callers are judged and counted here.
  server.addService(Health, {});
  for (const name of REFLECTION_NAMES) server.addService(ServerReflection, {}, { name });
  return { server, health: new LoopHealth(server) };
}
