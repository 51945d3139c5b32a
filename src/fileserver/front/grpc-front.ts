// The gRPC server of a FileServer: its services, the session check of each call, and health by its state.

import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import type { ServingState } from "#fileserver/operations/serving-state.ts";
import type { TlsMaterial } from "#security/authority/tls-material.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { HealthService } from "#wire/grpc/health.ts";
import { addReflection } from "#wire/grpc/reflection.ts";
import { requestIds } from "#wire/grpc/request-ids.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import { fileServerGate } from "./call-gate.ts";
import { callLog } from "./call-log.ts";
import { certificateWatch } from "./certificate-watch.ts";
import { CALL_COSTS, REQUEST_LIMITS, USUAL_REQUEST } from "./request-limits.ts";
import { fileServerRoutes, PASSWORD_METHODS, SESSIONLESS_METHODS } from "./routes.ts";
import { slowCalls } from "./slow-calls.ts";

/** Dependencies of the front. */
export interface GrpcFrontDeps {
  readonly tls: TlsMaterial | undefined;
  readonly reflection: boolean;
  /** Calls at once on one connection (D17). */
  readonly streamsPerConnection: number;
  readonly telemetry: NodeTelemetry;
  /** Calls that take longer are logged, in milliseconds. */
  readonly slowCallMs: number;
  readonly service: FileService;
  readonly sessions: SessionTable;
  readonly state: ServingState;
  readonly onSecurityEvent: SecurityEventSink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A server that does not listen yet, with its health. */
export interface GrpcFront {
  readonly server: GrpcServer;
  readonly health: HealthService;
}

/** Assembles the server; health is NOT_SERVING until the state says otherwise. */
export function createGrpcFront(deps: GrpcFrontDeps): GrpcFront {
  const { service, sessions, state, log } = deps;
  const watchCertificate = certificateWatch(deps.onSecurityEvent, deps.clock);
  const calls = callLog(log, service.meter, deps.clock);
  const slow = slowCalls({ ...deps, thresholdMs: deps.slowCallMs });
  const server = new GrpcServer({
    ...(deps.tls === undefined ? {} : { tls: { ...deps.tls, requestClientCertificate: true } }),
    limits: { maxConcurrentStreams: deps.streamsPerConnection },
    gate: fileServerGate({
      sessions,
      state,
      service: FileServer.typeName,
      exempt: SESSIONLESS_METHODS,
      byPassword: PASSWORD_METHODS,
      onCall: ({ peer }) => watchCertificate(peer),
      onRefused: calls.refused,
    }),
    interceptors: [requestIds, slow, calls.interceptor],
    mapError,
    onError: ({ kind, error, method, peer }) => {
      if (kind === "connection") {
        log.debug("connection_failed", { address: peer?.address, error: errorText(error) });
      } else if (kind === "overload") {
        log.warn("connections_turned_away", { reason: errorText(error) });
      } else {
        log.error("unexpected_failure", { where: method?.path ?? kind, error: errorText(error) });
      }
    },
  });
  const health = new HealthService();
  const follow = (isServing: boolean): void => {
    health.setServing("", isServing);
    health.setServing(FileServer.typeName, isServing);
  };
  follow(state.isServing);
  state.onChange(follow);
  health.addTo(server);
  server.addService(FileServer, fileServerRoutes(service), {
    requests: REQUEST_LIMITS,
    otherRequests: USUAL_REQUEST,
    costs: CALL_COSTS,
  });
  if (deps.reflection) addReflection(server, [FileServer, Health]);
  return { server, health };
}
