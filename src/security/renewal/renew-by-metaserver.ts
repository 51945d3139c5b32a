// Asks the MetaServers for the next certificate of whoever holds one: a node, a door or the console (D20).
import type { TlsMaterial } from "#security/authority/tls-material.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

const RENEW_TIMEOUT_MS = 10_000;

/**
 * Returns a new certificate (PEM) for the same key and names, by the one in use. Asks one MetaServer after
 * another, since perhaps only one has the authority at hand; rejects with the first failure when none signs.
 */
export async function renewByMetaServer(
  metaservers: readonly string[],
  current: TlsMaterial,
  nodeId = "",
): Promise<string> {
  let failure: unknown;
  for (const address of metaservers) {
    const channel = new GrpcChannel({ addresses: [address], tls: current });
    try {
      const client = createClient(MetaServer, channel);
      return (await client.renewCertificate({ nodeId }, { timeoutMs: RENEW_TIMEOUT_MS })).certificate;
    } catch (error) {
      failure ??= error;
    } finally {
      channel.close();
    }
  }
  throw failure;
}
