// Checks whether the processes of the demonstration serve.

import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";

const PROBE_TIMEOUT_MS = 2_000;

/**
 * True when the gRPC server at host:port reports the service as serving; ca is the authority's certificate,
 * undefined without TLS.
 */
export async function isServing(address: string, service: string, ca: string | undefined): Promise<boolean> {
  const channel = new GrpcChannel({ addresses: [address], ...(ca === undefined ? {} : { tls: { ca } }) });
  try {
    const { status } = await createClient(Health, channel).check(
      { service },
      { timeoutMs: PROBE_TIMEOUT_MS },
    );
    return status === ServingStatus.SERVING;
  } finally {
    channel.close();
  }
}

/** True when a GET of the URL answers 200. */
export async function answersOk(url: string): Promise<boolean> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS), redirect: "manual" });
  await answer.body?.cancel();
  return answer.status === 200;
}
