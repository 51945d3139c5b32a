// Checks a server's health, and the metrics listener of a FileServer.
import { metricsPortOf } from "#base/metrics-port.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import { openChannel } from "#client/signin/server-address.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { createClient } from "#wire/grpc/client.ts";
import { type Check, failed, ok, warning } from "./finding.ts";

/** The trust of a connection: the cluster's authority, and whether it is a mock cluster without TLS. */
export interface Trust {
  readonly ca: string | undefined;
  readonly mock: boolean;
}

/** Checks the health of a gRPC service. `kind` is the server's name, such as "metaserver". */
export function serverCheck(kind: string, address: string, service: string, trust: Trust): Check {
  const name = `${kind} ${address}`;
  return {
    name,
    async run(signal) {
      const channel = openChannel(trust, address, [address]);
      try {
        const { status } = await createClient(Health, channel).check({ service }, { signal });
        if (status === Status.SERVING) return [ok(name, "serves")];
        return [
          warning(
            name,
            "answers, but takes no calls at present",
            "See its log; it may be starting or stopping.",
          ),
        ];
      } catch (error) {
        return [
          failed(
            name,
            // Its causes repeat the same in other words.
            error instanceof Error ? error.message : String(error),
            "See that it runs, that the address is right, and what its log says.",
          ),
        ];
      } finally {
        channel.close();
      }
    },
  };
}

/** An answer of an HTTP listener. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Unix milliseconds of its Date header, whole seconds; undefined without one. */
  readonly dateMs: number | undefined;
}

/** URL of a FileServer's metrics listener (spec 4.4). */
export function metricsUrlOf(grpcAddress: string): string {
  const { host, port } = parseHostPort(grpcAddress);
  return `http://${formatHostPort({ host, port: metricsPortOf(port) })}`;
}

const BODY_MAX_BYTES = 64 * 1_048_576;

/** Reads a JSON document; never follows a redirect. Rejects without an answer or a JSON object. */
export async function getJson(
  url: string,
  signal: AbortSignal,
  token?: string,
  ask: Fetch = fetch,
): Promise<HttpAnswer> {
  const answer = await ask(url, {
    signal,
    redirect: "manual",
    headers: {
      accept: "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
  });
  const length = Number(answer.headers.get("content-length") ?? "0");
  if (length > BODY_MAX_BYTES) throw new Error("the answer is too long");
  const body: unknown = await answer.json();
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new Error("the answer is no JSON object");
  const date = Date.parse(answer.headers.get("date") ?? "");
  return {
    status: answer.status,
    body: body as Record<string, unknown>,
    dateMs: Number.isNaN(date) ? undefined : date,
  };
}
