// The rule of spec 5.6 on one TLS port: users need no certificate, FileServers need the right one.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock, systemClock } from "#base/clock.ts";
import { IP_MISMATCH_EVENT_INTERVAL_MS, NODE_LEASE_MS } from "#base/limits.ts";
import { VERSION } from "#base/version.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import {
  exportPrivateKey,
  exportPublicKey,
  importPrivateKey,
  makeKeyPair,
  makeLeafCertificate,
} from "#security/authority/certificate-maker.ts";
import { NODE_CERTIFICATE_LIFETIME_MS } from "#security/authority/issued-certificates.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { suitesOfTls12 } from "#testing/tls-probe.ts";
import { Code } from "#wire/framing/status.ts";
import type { Client, GrpcChannelOptions } from "#wire/grpc/client.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { as, type MetaServerUnderTest, nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";

const TIMEOUT = { timeout: 60_000 };
type Tls = NonNullable<GrpcChannelOptions["tls"]>;

interface Cluster extends MetaServerUnderTest {
  readonly authority: Authority;
  readonly foreign: Authority;
  /** Client certificates of a node, or none. */
  tlsOf(issuer?: Authority, id?: string): Promise<Tls>;
  /** A certificate of the cluster with just these names. */
  tlsNamed(...dnsNames: string[]): Promise<Tls>;
}

async function startCluster(t: TestContext, hasControlListener = false): Promise<Cluster> {
  const folder = scratchFolder("metaserver-");
  const make = async (name: string): Promise<Authority> => {
    await mkdir(join(folder, name));
    return loadOrCreateAuthority(join(folder, name), { clock: systemClock });
  };
  const authority = await make("ca");
  const own = await authority.issueNodeCertificate({ id: "metaserver", addresses: ["127.0.0.1"] });
  const clock = new ManualClock(Date.now());
  const server = await startForTest(t, {
    clock,
    hasControlListener,
    tls: { cert: own.certificatePem, key: own.keyPem, ca: authority.certificatePem },
  });
  return {
    ...server,
    authority,
    foreign: await make("foreign"),
    async tlsOf(issuer, id = "a") {
      if (issuer === undefined) return { ca: authority.certificatePem };
      const issued = await issuer.issueNodeCertificate({ id });
      return { ca: authority.certificatePem, cert: issued.certificatePem, key: issued.keyPem };
    },
    async tlsNamed(...dnsNames) {
      const keys = await makeKeyPair();
      const privateKey = await importPrivateKey(await readFile(join(folder, "ca", "ca.key"), "utf8"));
      const cert = await makeLeafCertificate(
        { certificatePem: authority.certificatePem, privateKey },
        { commonName: "test", dnsNames, ipAddresses: [], publicKey: await exportPublicKey(keys.publicKey) },
        { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) },
      );
      return { ca: authority.certificatePem, cert, key: await exportPrivateKey(keys.privateKey) };
    },
  };
}

/** The calls of a node in its own name, here "a". */
const SHARE = { owner: "u@example.com", path: "/docs", user: "v@example.com", version: 7n };

function nodeCalls(client: Client<typeof MetaServer>): Promise<unknown>[] {
  return [
    client.registerFileServer(nodeMessage("a")),
    client.heartbeat({ fsId: "a", epoch: 1n }),
    client.claimRoot({ fsId: "a", epoch: 1n, username: "u@example.com" }),
    client.rootShare({ fsId: "a", epoch: 1n, ...SHARE }),
    client.rootUnshare({ fsId: "a", epoch: 1n, ...SHARE }),
  ];
}

const certificateRequired = (call: Promise<unknown>): Promise<void> =>
  refused(call, Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");

async function allRefused(client: Client<typeof MetaServer>): Promise<void> {
  await Promise.all(nodeCalls(client).map(certificateRequired));
}

test(
  "without a certificate of the cluster every control call is Unauthenticated, and nothing is kept (spec 5.6)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    await allRefused(cluster.connect(await cluster.tlsOf()));
    await allRefused(cluster.connect(await cluster.tlsOf(cluster.foreign)));
    await allRefused(cluster.connect(await cluster.tlsNamed("a.example.com")));
    await allRefused(
      cluster.connect(await cluster.tlsNamed("a.cluster.local.example.com", "x.a.cluster.local")),
    );
    assert.deepEqual(await cluster.directory.nodes(), []);
    assert.ok(cluster.logged.some(({ event }) => event === "control_call_refused"));
  },
);

test(
  "of TLS 1.2 nothing but authenticated encryption with forward secrecy is taken, from nodes and users alike",
  TIMEOUT,
  async (t) => {
    const { port } = await startCluster(t);
    assert.deepEqual(await suitesOfTls12(port, { ALPNProtocols: ["h2"] }), [
      "ECDHE-ECDSA-AES256-GCM-SHA384",
      "ECDHE-ECDSA-CHACHA20-POLY1305",
      "ECDHE-ECDSA-AES128-GCM-SHA256",
    ]);
  },
);

test("a node's own certificate registers, beats and claims (spec 5.6)", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const client = cluster.connect(await cluster.tlsOf(cluster.authority));
  assert.equal((await client.registerFileServer(nodeMessage("a"))).epoch, 1n);
  assert.equal((await client.heartbeat({ fsId: "a", epoch: 1n })).known, true);
  assert.equal((await client.claimRoot({ fsId: "a", epoch: 1n, username: "u@example.com" })).fsId, "a");
  await client.rootShare({ fsId: "a", epoch: 1n, ...SHARE });
  assert.equal((await cluster.directory.rootsSharedWith("v@example.com"))[0]?.path, "/docs");
});

test("a node speaks for no other id (D20)", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  await cluster.connect(await cluster.tlsOf(cluster.authority)).registerFileServer(nodeMessage("a"));
  const other = cluster.connect(await cluster.tlsOf(cluster.authority, "b"));
  await Promise.all(nodeCalls(other).map(certificateRequired));
  assert.equal((await cluster.directory.nodes())[0]?.epoch, 1);
});

test(
  "a certificate for `fileserver` or `localhost` alone keeps to the ids that it registered first (D20)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const generic = cluster.connect(await cluster.tlsNamed("fileserver"));
    assert.equal((await generic.registerFileServer(nodeMessage("a"))).epoch, 1n);
    const own = cluster.connect(await cluster.tlsOf(cluster.authority, "b"));
    await own.registerFileServer(nodeMessage("b"));
    cluster.clock.advance(NODE_LEASE_MS);
    assert.equal((await generic.registerFileServer(nodeMessage("a"))).epoch, 2n);
    const another = cluster.connect(await cluster.tlsNamed("localhost"));
    await refused(another.registerFileServer(nodeMessage("a")), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    await refused(generic.registerFileServer(nodeMessage("b")), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  },
);

test(
  "a live id is held by its key: a second certificate for it waits for the lease to end (D19)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const first = cluster.connect(await cluster.tlsOf(cluster.authority));
    const second = cluster.connect(await cluster.tlsOf(cluster.authority));
    await first.registerFileServer(nodeMessage("a"));
    assert.equal((await first.registerFileServer(nodeMessage("a", { dataId: "new" }))).epoch, 2n);
    await refused(second.registerFileServer(nodeMessage("a")), Code.ALREADY_EXISTS, "NODE_ID_HELD");
    cluster.clock.advance(NODE_LEASE_MS);
    assert.equal((await second.registerFileServer(nodeMessage("a"))).epoch, 3n);
    await refused(first.heartbeat({ fsId: "a", epoch: 2n }), Code.FAILED_PRECONDITION, "FENCED");
  },
);

test("a certificate that has run out since the connection was made is no longer good", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const client = cluster.connect(await cluster.tlsOf(cluster.authority));
  await client.registerFileServer(nodeMessage("a"));
  cluster.clock.jumpWall(NODE_CERTIFICATE_LIFETIME_MS + 1_000);
  await refused(client.heartbeat({ fsId: "a", epoch: 1n }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
});

test(
  "users need no certificate, and outside mock mode no mock token helps them (spec 5.7)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const user = cluster.connect(await cluster.tlsOf());
    await refused(user.navigate({}, as("u@example.com")), Code.UNAUTHENTICATED, "MOCK_TOKEN");
    await refused(user.getRoots({}), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  },
);

test(
  "versions are exchanged, neighbours and messages of the first release work, and a node far away is refused (D18)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const client = cluster.connect(await cluster.tlsOf(cluster.authority));
    // Messages of the first release: no reserve, no cluster, and heartbeats without a process.
    const first = { fsId: "a", grpcAddr: "a.example.com:50051", version: "", instanceId: "i", dataId: "d" };
    const reply = await client.registerFileServer(first);
    assert.equal(reply.serverVersion, VERSION);
    assert.equal((await client.heartbeat({ fsId: "a", epoch: 1n })).known, true);
    const [major = "0", minor = "0"] = VERSION.split(".");
    const as = (version: string): ReturnType<typeof client.registerFileServer> =>
      client.registerFileServer(nodeMessage("a", { version }));
    const { clusterId } = await as(VERSION);
    assert.equal((await as(`${major}.${Number(minor) + 1}.0`)).clusterId, clusterId);
    await refused(as(`${major}.${Number(minor) + 2}.0`), Code.FAILED_PRECONDITION, "VERSION_MISMATCH");
  },
);

test(
  "whoever speaks for a node without right is a security event, once in ten minutes for each address (M-02, D22)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const events = (): string[] =>
      cluster.logged
        .filter(({ event }) => event === "security_event")
        .map(({ fields }) => String(fields["type"]));
    const nobody = cluster.connect(await cluster.tlsOf());
    for (let count = 0; count < 5; count++) {
      await certificateRequired(nobody.heartbeat({ fsId: "a", epoch: 1n }));
    }
    assert.deepEqual(events(), ["unknown_cert"]);
    await cluster.connect(await cluster.tlsOf(cluster.authority)).registerFileServer(nodeMessage("a"));
    const second = cluster.connect(await cluster.tlsOf(cluster.authority));
    for (let count = 0; count < 3; count++) {
      await refused(second.registerFileServer(nodeMessage("a")), Code.ALREADY_EXISTS, "NODE_ID_HELD");
    }
    assert.deepEqual(events(), ["unknown_cert", "node_id_held"]);
    cluster.clock.advance(IP_MISMATCH_EVENT_INTERVAL_MS);
    await certificateRequired(nobody.heartbeat({ fsId: "a", epoch: 1n }));
    assert.equal(events().length, 3);
  },
);

test(
  "an address for nodes alone serves who shows a node's certificate, and closes every other connection",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t, true);
    const { controlPort } = cluster;
    assert.ok(controlPort !== undefined);
    const node = cluster.connect(await cluster.tlsOf(cluster.authority), controlPort);
    const { epoch } = await node.registerFileServer(nodeMessage("a"));
    assert.equal(epoch, 1n);
    for (const tls of [await cluster.tlsOf(), await cluster.tlsOf(cluster.foreign)]) {
      await assert.rejects(cluster.connect(tls, controlPort).getRoots({}, { timeoutMs: 5_000 }), {
        code: Code.UNAVAILABLE,
      });
      await refused(cluster.connect(tls).getRoots({}), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    }
  },
);
