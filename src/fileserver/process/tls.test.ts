// A node with certificates: clients over TLS, the MetaServer over mutual TLS, and certificates in /metrics.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { renegotiates, suitesOfTls12 } from "#testing/tls-probe.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { Peer } from "#wire/grpc/handler.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { startTestNode, type TestNode } from "./node.fixture.ts";

let folder = "";
let authority: Authority;
let meta: GrpcServer;
let node: TestNode;
const peers: Peer[] = [];
before(async () => {
  folder = scratchFolder("grove-tls-");
  authority = await loadOrCreateAuthority(folder, { clock: systemClock });
  const material = async (id: string) => {
    const issued = await authority.issueNodeCertificate({
      id,
      names: ["localhost"],
      addresses: ["127.0.0.1"],
    });
    return { cert: issued.certificatePem, key: issued.keyPem, ca: authority.certificatePem };
  };
  meta = new GrpcServer({ tls: { ...(await material("meta")), requestClientCertificate: true } });
  meta.addService(MetaServer, {
    registerFileServer: (_request, context) => {
      peers.push(context.peer);
      return { clusterId: "c1", heartbeatSeconds: 5, epoch: 1n };
    },
    claimRoot: () => ({ rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", fsId: "n1", address: "" }),
  });
  const { port } = await meta.listen({ host: "127.0.0.1", port: 0 });
  node = await startTestNode({ options: { tls: await material("n1"), metaservers: [`127.0.0.1:${port}`] } });
});
after(async () => {
  await node.stop();
  await meta.close();
});

test("the node shows its certificate to the metaserver (spec 5.6)", () => {
  const [peer] = peers;
  assert.ok(peer?.certificate?.authorized);
  assert.match(peer.certificate.subjectAltName ?? "", /DNS:n1\.cluster\.local/);
});

test("a client that trusts the cluster's authority signs in and works over TLS; one that does not gets nothing", async () => {
  const trusting = new GrpcChannel({ addresses: [node.address], tls: { ca: authority.certificatePem } });
  const other = new GrpcChannel({ addresses: [node.address], tls: {} });
  const plain = new GrpcChannel({ addresses: [node.address] });
  try {
    const mock = { metadata: { authorization: "Bearer mock-jwt.a@example.com" } };
    const reply = await createClient(FileServer, trusting).registerClient({}, mock);
    const session = { metadata: { authorization: `Bearer ${reply.sessionToken}` } };
    const made = await createClient(FileServer, trusting).createFile(
      { path: "/f", data: Buffer.from("x") },
      session,
    );
    assert.equal(made.size, 1n);
    for (const channel of [other, plain]) {
      await assert.rejects(
        createClient(FileServer, channel).registerClient({}, { ...mock, timeoutMs: 5_000 }),
        (error) => error instanceof StatusError && error.code === Code.UNAVAILABLE,
      );
    }
  } finally {
    for (const channel of [trusting, other, plain]) channel.close();
  }
});

test("of TLS 1.2 nothing but authenticated encryption with forward secrecy is taken", async () => {
  const port = Number(node.address.split(":").at(-1));
  assert.deepEqual(await suitesOfTls12(port, { ALPNProtocols: ["h2"] }), [
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
  ]);
  assert.equal(await renegotiates(port, { ALPNProtocols: ["h2"] }), false);
});

test("/metrics says how many days the certificate has left (D12)", async () => {
  const metrics = (await (await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics`)).json()) as Record<
    string,
    number
  >;
  const issued = await authority.issueNodeCertificate({ id: "probe" });
  const wholeDays = Math.floor(
    (Date.parse(new X509Certificate(issued.certificatePem).validTo) - Date.now()) / 86_400_000,
  );
  assert.ok(Math.abs((metrics["cert_days_left"] ?? 0) - wholeDays) <= 1);
});
