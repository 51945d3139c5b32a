// Tests of channels over TLS: which name a server's certificate has to hold (decision D23).
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { loadOrCreateAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { createClient } from "#wire/grpc/client.ts";
import { HealthService } from "#wire/grpc/health.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { openChannel } from "./server-address.ts";

test("of several servers each shows a certificate of its own; one server's must hold the name that was asked for", async () => {
  const folder = scratchFolder("grove-client-");
  const authority = await loadOrCreateAuthority(folder, { clock: systemClock });
  const ca = authority.certificatePem;
  const issued = await authority.issueNodeCertificate({ id: "meta", names: [], addresses: ["127.0.0.1"] });
  const server = new GrpcServer({ tls: { cert: issued.certificatePem, key: issued.keyPem, ca } });
  const health = new HealthService();
  health.setServing("", true);
  health.addTo(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const answers = async (address: string, addresses: readonly string[]): Promise<boolean> => {
    const channel = openChannel({ ca, mock: false }, address, addresses);
    try {
      await createClient(Health, channel).check({}, { timeoutMs: 5_000 });
      return true;
    } catch {
      return false;
    } finally {
      channel.close();
    }
  };
  try {
    const real = `127.0.0.1:${port}`;
    assert.equal(await answers(real, [real]), true);
    assert.equal(await answers("localhost:1", ["localhost:1", real]), true);
    // A host's addresses do not prove the identity of the server there.
    assert.equal(await answers(`other.example:${port}`, [real]), false);
  } finally {
    await server.close();
  }
});
