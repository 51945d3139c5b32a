// Derives the port of /metrics and /health from a server's gRPC port (spec 4.4, decision T6).
import { GroveError } from "./errors.ts";

/** The metrics port is the gRPC port minus this (spec 4.4). */
export const METRICS_PORT_OFFSET = 41_000;

/** The metrics port of a gRPC port; below 1 where there is none. */
export function metricsPortOf(grpcPort: number): number {
  return grpcPort - METRICS_PORT_OFFSET;
}

/** The metrics port of a server that must have one. Throws BAD_ARGUMENT for a gRPC port without one (T6). */
export function checkedMetricsPortOf(grpcPort: number): number {
  const port = metricsPortOf(grpcPort);
  if (port < 1) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the metrics port is the gRPC port minus ${METRICS_PORT_OFFSET}, so the gRPC port must be above ${METRICS_PORT_OFFSET} ` +
        `(42024 or above needs no privilege); ${grpcPort} is not`,
    );
  }
  return port;
}
