// Calls to one FileServer on an operator's behalf: over TLS, or within this machine, where nobody can read the password (spec 4.3, T9).

import { isIP } from "node:net";
import { isLoopbackAddress } from "#base/network.ts";
import { createClient, GrpcChannel } from "#grpc/client.ts";
import { FileServer } from "#proto/gen/grove/v1/file_server_pb.ts";
import { ProblemError } from "./route.ts";

/** What one SetQuota needs. */
export interface QuotaCall {
  /** gRPC address of the node, host:port. */
  readonly address: string;
  readonly username: string;
  readonly quotaBytes: bigint;
  /** Files and directories; 0 takes the entry away, undefined leaves it as it is. */
  readonly inodeLimit: number | undefined;
  /** SHA-256 hex of the operator's password (T11). */
  readonly passwordHash: string;
  readonly timeoutMs: number;
}

/** Sets a quota on a node and gives its answer. Rejects with StatusError, and with ProblemError where the password must not be sent. */
export type SetQuotaOnNode = (
  call: QuotaCall,
) => Promise<{ readonly success: boolean; readonly error: string; readonly inodeLimit: bigint }>;

/** Dials nodes whose certificates an authority (PEM) has signed; undefined for nodes without TLS, which must be on this machine. */
export function quotaDialer(authority: string | undefined): SetQuotaOnNode {
  return async ({ address, username, quotaBytes, inodeLimit, passwordHash, timeoutMs }) => {
    if (authority === undefined && !isThisMachine(address)) {
      throw new ProblemError(
        "NODE_ERROR",
        "the operator's password is sent to other machines only over TLS: start the console with -tls_ca",
        { reason: "TLS_REQUIRED" },
      );
    }
    // Quotas are changed now and then: a connection that is kept would be one more thing that can be stale.
    const channel = new GrpcChannel({
      addresses: [address],
      limits: { connectMs: timeoutMs },
      ...(authority === undefined ? {} : { tls: { ca: authority } }),
    });
    try {
      return await createClient(FileServer, channel).setQuota(
        { username, quotaBytes, ...(inodeLimit === undefined ? {} : { inodeLimit: BigInt(inodeLimit) }) },
        { metadata: { "x-admin-password-hash": passwordHash }, timeoutMs },
      );
    } finally {
      channel.close();
    }
  };
}

function isThisMachine(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(":")).replaceAll(/^\[|\]$/g, "");
  return host === "localhost" || (isIP(host) !== 0 && isLoopbackAddress(host));
}
