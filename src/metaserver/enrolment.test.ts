// Joining, renewing and revoking against a MetaServer with an authority, over real TLS (D20).
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { type Authority, createAuthority, REVOKED_FILE } from "#authority/authority.ts";
import { exportPrivateKey, makeCertificateRequest, makeKeyPair } from "#authority/certificate-maker.ts";
import { JoinTokens } from "#authority/join-tokens.ts";
import { revoke } from "#authority/revocations.ts";
import { signAgain } from "#authority/sign-again.ts";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import {
  CERTIFICATE_CHECK_INTERVAL_MS,
  JOIN_FAILURES_PER_MINUTE_PER_ADDRESS,
  RENEWALS_PER_HOUR_PER_NODE,
} from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { GrpcChannelOptions } from "#grpc/client.ts";
import { Code, StatusError } from "#grpc/status.ts";
import { type MetaCertificates, openCertificates } from "./certificates.ts";
import { joinCluster } from "./join-cluster.ts";
import {
  type MetaServerUnderTest,
  nodeMessage,
  refused,
  startForTest,
  temporaryFolder,
} from "./meta-server.fixture.ts";

const TIMEOUT = { timeout: 60_000 };
const HOUR_MS = 3_600_000;
type Tls = NonNullable<GrpcChannelOptions["tls"]>;

interface Cluster extends MetaServerUnderTest {
  readonly folder: string;
  readonly authority: Authority;
  readonly tokens: JoinTokens;
  readonly certificates: MetaCertificates;
  token(id?: string): Promise<string>;
  /** Joins as people do, into a folder of its own. */
  join(
    token: string,
    options?: { id?: string; data?: string; hosts?: string[]; advertise?: string; again?: boolean },
  ): Promise<Tls & { readonly folder: string; readonly id: string }>;
}

async function startCluster(t: TestContext): Promise<Cluster> {
  const folder = await temporaryFolder(t);
  const clock = new ManualClock(Date.now());
  await createAuthority(join(folder, "ca"), { clock });
  const certificates = await openCertificates(
    {
      caDir: join(folder, "ca"),
      certDays: 90,
      id: "metaserver",
      listen: "127.0.0.1:0",
      advertise: "meta.example.net:50050",
    },
    join(folder, "meta"),
    { clock, log: silentLogger, random: () => 0 },
  );
  t.after(() => certificates.close());
  const server = await startForTest(t, { clock, certificates });
  const { authority } = certificates;
  assert.ok(authority);
  const tokens = new JoinTokens(authority.folder, clock);
  let count = 0;
  return {
    ...server,
    folder,
    authority,
    tokens,
    certificates,
    token: (id) => tokens.make({ fingerprint: authority.fingerprint, id, lifetimeMs: HOUR_MS }),
    async join(token, options = {}) {
      const dataFolder = options.data ?? join(folder, `data-${++count}`);
      const joined = await joinCluster({
        dataFolder,
        metaservers: [`localhost:${server.port}`],
        token,
        id: options.id,
        fallbackId: "fallback",
        advertise: options.advertise,
        hosts: options.hosts ?? [],
        again: options.again ?? false,
        clock,
      });
      const [cert, key, ca] = await Promise.all(
        [joined.paths.cert, joined.paths.key, joined.paths.ca].map((path) => readFile(path, "utf8")),
      );
      assert.ok(cert !== undefined && key !== undefined && ca !== undefined);
      return { cert, key, ca, folder: dataFolder, id: joined.id };
    },
  };
}

const has =
  (code: ErrorCode, text?: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(isGroveError(error, code), String(error));
    if (text !== undefined) assert.match(error.message, text);
    return true;
  };

test(
  "a node joins with a token, and its certificate registers it and nobody else (D20, spec 5.6)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"), {
      advertise: "n1.example.net:50051",
      hosts: ["10.0.0.7"],
    });
    assert.equal(node.id, "n1");
    const certificate = new X509Certificate(String(node.cert));
    assert.equal(certificate.subjectAltName, "DNS:n1.cluster.local, DNS:n1.example.net, IP Address:10.0.0.7");
    assert.equal((await stat(join(node.folder, "tls", "node.key"))).mode & 0o777, 0o600);
    const client = cluster.connect(node);
    assert.equal((await client.registerFileServer(nodeMessage("n1"))).serverVersion !== "", true);
    await refused(client.registerFileServer(nodeMessage("n2")), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  },
);

test("a token is used up by joining, and by nothing that fails before", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const token = await cluster.token("n1");
  await assert.rejects(cluster.join(token, { id: "n2" }), has("BAD_ARGUMENT", /another node id/));
  await assert.rejects(cluster.join(token, { hosts: ["x.cluster.local"] }), has("BAD_ARGUMENT", /node ids/));
  await assert.rejects(cluster.join(token, { hosts: ["-x"] }), has("BAD_ARGUMENT", /DNS name/));
  assert.equal((await cluster.join(token)).id, "n1");
  await assert.rejects(cluster.join(token), has("TOKEN_REJECTED"));
});

test("two nodes with one token: one joins", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const token = await cluster.token("n1");
  const outcomes = await Promise.allSettled([cluster.join(token), cluster.join(token), cluster.join(token)]);
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
  await assert.rejects(cluster.join(token), has("TOKEN_REJECTED"));
  assert.deepEqual((await cluster.authority.issued.list(cluster.clock.wallMs())).map(({ id }) => id).sort(), [
    "metaserver",
    "n1",
  ]);
});

test(
  "a token without an id takes no id that is held, and not the MetaServer's name; one for the id may",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const first = await cluster.join(await cluster.token(), { id: "n1" });
    const open = await cluster.token();
    for (const id of ["n1", "metaserver"]) {
      await assert.rejects(cluster.join(open, { id }), has("NODE_ID_HELD", /grove node token -id/));
    }
    await assert.rejects(
      cluster.join(open, { id: "n2", hosts: ["META.example.net"] }),
      has("BAD_ARGUMENT", /where this MetaServer is reached/),
    );
    for (const hosts of [
      ["fileserver"],
      ["*.example.net"],
      ["a,DNS:b"],
      Array.from({ length: 17 }, (_, n) => `h${n}`),
    ]) {
      await assert.rejects(cluster.join(open, { id: "n2", hosts }), has("BAD_ARGUMENT"));
    }
    // Nothing of that has cost the token.
    assert.equal((await cluster.join(open, { id: "n2" })).id, "n2");
    const again = await cluster.join(await cluster.token("n1"), { hosts: ["meta.example.net"] });
    assert.notEqual(again.key, first.key);
  },
);

test("a token for certain hosts lets no other name into the certificate", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const { fingerprint } = cluster.authority;
  const hosts = ["N1.example.net", "10.0.0.7", "meta.example.net"];
  const token = await cluster.tokens.make({ fingerprint, id: undefined, hosts, lifetimeMs: HOUR_MS });
  for (const asked of ["n2.example.net", "10.0.0.8", "localhost"]) {
    await assert.rejects(
      cluster.join(token, { id: "n1", hosts: ["n1.example.net", asked] }),
      has("BAD_ARGUMENT", /not for a node that is reached as/),
    );
  }
  const node = await cluster.join(token, {
    id: "n1",
    hosts: ["n1.EXAMPLE.net", "10.0.0.7", "meta.example.net"],
  });
  assert.match(new X509Certificate(String(node.cert)).subjectAltName ?? "", /meta\.example\.net/);
});

test("of several MetaServers the one that is there and signs is asked", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const own = await cluster.authority.issueNodeCertificate({ id: "second", names: ["localhost"] });
  const second = await startForTest(t, {
    clock: cluster.clock,
    tls: { cert: own.certificatePem, key: own.keyPem, ca: cluster.authority.certificatePem },
  });
  const dataFolder = join(cluster.folder, "several");
  const metaservers = ["localhost:1", `localhost:${second.port}`, `localhost:${cluster.port}`];
  const order = { dataFolder, metaservers, id: undefined, fallbackId: "x", advertise: undefined, hosts: [] };
  const token = await cluster.token("n1");
  assert.equal((await joinCluster({ ...order, token, again: false, clock: cluster.clock })).id, "n1");
  await assert.rejects(
    joinCluster({ ...order, token, again: true, clock: cluster.clock }),
    has("TOKEN_REJECTED"),
  );
});

test(
  "a folder that has joined joins again only when told to, and keeps its key, so that it stays the holder (D19)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const first = await cluster.join(await cluster.token("n1"));
    const token = await cluster.token();
    await assert.rejects(
      cluster.join(token, { data: first.folder }),
      has("BAD_ARGUMENT", /joined already, as n1/),
    );
    const again = await cluster.join(token, { data: first.folder, id: "n1", again: true });
    assert.equal(again.key, first.key);
    assert.notEqual(again.cert, first.cert);
  },
);

test(
  "wrong tokens are refused alike, five a minute and address, and then not even looked at",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const good = await cluster.token("n1");
    const wrong = good.replace(/\..{43}\./, `.${"A".repeat(43)}.`);
    for (let attempt = 0; attempt < JOIN_FAILURES_PER_MINUTE_PER_ADDRESS; attempt++) {
      await assert.rejects(cluster.join(wrong), has("TOKEN_REJECTED"));
    }
    await assert.rejects(cluster.join(wrong), has("RATE_LIMITED"));
    await assert.rejects(cluster.join(good), has("RATE_LIMITED"));
    cluster.clock.advance(60_000);
    assert.equal((await cluster.join(good)).id, "n1");
    const text = JSON.stringify(cluster.logged, (_key, value: unknown) =>
      typeof value === "bigint" ? "" : value,
    );
    assert.ok(text.includes("join_refused") && !text.includes("gjt_"));
  },
);

test("many wrong tokens at once get no more attempts than one after another", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const client = cluster.connect({ ca: cluster.authority.certificatePem });
  const calls = Array.from({ length: 40 }, () => client.joinNode({ token: "gjt_x", nodeId: "n1" }));
  const reasons = await Promise.all(
    calls.map((call) =>
      call.then(
        () => "",
        (error: unknown) => (error instanceof StatusError ? error.metadata.get("svc-reason") : String(error)),
      ),
    ),
  );
  assert.equal(
    reasons.filter((reason) => reason !== "RATE_LIMITED").length,
    JOIN_FAILURES_PER_MINUTE_PER_ADDRESS,
  );
});

test("the key of a request must have signed it, and be strong", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const client = cluster.connect({ ca: cluster.authority.certificatePem });
  const one = await makeKeyPair();
  const two = await makeKeyPair();
  const stolen = await makeCertificateRequest({ publicKey: one.publicKey, privateKey: two.privateKey }, "n1");
  const token = await cluster.token("n1");
  for (const certificateRequest of [stolen, "", "junk", await exportPrivateKey(one.privateKey)]) {
    await refused(
      client.joinNode({ token, nodeId: "n1", certificateRequest }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    );
  }
});

test("a server that is not of the token's cluster gets nothing, not even the token", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const other = await createAuthority(join(cluster.folder, "other"), { clock: cluster.clock });
  const evil = await other.issueNodeCertificate({
    id: "metaserver",
    names: ["localhost"],
    addresses: ["127.0.0.1"],
  });
  let received = 0;
  const listen = async (server: NetServer): Promise<string> => {
    server.listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    return `localhost:${(server.address() as AddressInfo).port}`;
  };
  const joinAt = async (address: string): Promise<unknown> =>
    joinCluster({
      dataFolder: join(cluster.folder, "victim"),
      metaservers: [address],
      token: await cluster.token("n1"),
      id: undefined,
      fallbackId: "x",
      advertise: undefined,
      hosts: [],
      again: false,
      clock: cluster.clock,
    });
  const served = (chain: string): NetServer =>
    createTlsServer({ cert: chain, key: evil.keyPem, ALPNProtocols: ["h2"] }, (socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (data: Buffer) => {
        received += data.length;
      });
    });
  await assert.rejects(
    joinAt(await listen(served(evil.certificatePem))),
    has("CLUSTER_MISMATCH", /nothing was sent/),
  );
  // It shows the true authority's certificate behind its own, which is no proof: the connection that follows fails.
  const chained = `${evil.certificatePem}${cluster.authority.certificatePem}`;
  await assert.rejects(joinAt(await listen(served(chained))), has("STORE_UNAVAILABLE", /not trusted|verify/));
  assert.equal(received, 0);
  await assert.rejects(
    joinAt(await listen(createNetServer((socket) => socket.destroy()))),
    has("STORE_UNAVAILABLE"),
  );
  assert.deepEqual(await readdir(join(cluster.folder, "victim", "tls")).catch(() => []), ["node.key"]);
});

test(
  "renewal keeps id, key, names and addresses, and needs the old certificate (D20)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"), {
      hosts: ["n1.example.net", "10.0.0.7", "fd00::7"],
    });
    const client = cluster.connect(node);
    await client.registerFileServer(nodeMessage("n1"));
    cluster.clock.jumpWall(60 * 24 * HOUR_MS);
    const { certificate } = await client.renewCertificate({ nodeId: "n1" });
    const [old, renewed] = [new X509Certificate(String(node.cert)), new X509Certificate(certificate)];
    assert.equal(renewed.subjectAltName, old.subjectAltName);
    assert.ok(renewed.publicKey.equals(old.publicKey));
    assert.ok(renewed.validToDate > old.validToDate);
    assert.equal(renewed.ca, false);
    await refused(client.renewCertificate({ nodeId: "n2" }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    const plain = cluster.connect({ ca: cluster.authority.certificatePem });
    await refused(plain.renewCertificate({ nodeId: "n1" }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    cluster.clock.jumpWall(31 * 24 * HOUR_MS);
    await refused(client.renewCertificate({}), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  },
);

test("a certificate that is renewed too often waits", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const client = cluster.connect(await cluster.join(await cluster.token("n1")));
  for (let count = 0; count < RENEWALS_PER_HOUR_PER_NODE; count++) await client.renewCertificate({});
  await refused(client.renewCertificate({}), Code.RESOURCE_EXHAUSTED, "RATE_LIMITED");
});

test(
  "a revoked certificate makes no control calls within seconds, also on a connection that is open, and is not renewed",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"));
    const client = cluster.connect(node);
    await client.registerFileServer(nodeMessage("n1"));
    const { serialNumber } = new X509Certificate(String(node.cert));
    const list = join(cluster.authority.folder, REVOKED_FILE);
    await revoke(list, serialNumber, "lost");
    cluster.clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
    for (
      let tries = 0;
      tries < 200 && cluster.certificates.revocations?.isRevoked(serialNumber) !== true;
      tries++
    ) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (const call of [
      () => client.heartbeat({ fsId: "n1", epoch: 1n }),
      () => client.registerFileServer(nodeMessage("n1")),
      () => client.renewCertificate({}),
    ]) {
      await refused(call(), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    }
    // A list that cannot be understood changes nothing: what was revoked stays so.
    await writeFile(list, "not a serial number\n");
    cluster.clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await refused(client.heartbeat({ fsId: "n1", epoch: 1n }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  },
);

test("without -ca_dir, and without TLS, nothing is signed", TIMEOUT, async (t) => {
  const mock = await startForTest(t);
  await refused(mock.connect().joinNode({ token: "gjt_x" }), Code.UNIMPLEMENTED, "NOT_IMPLEMENTED");
  await refused(mock.connect().renewCertificate({}), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
});

test(
  "the MetaServer's own certificate changes while it runs: new connections get the new one, the old ones go on",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"));
    const early = cluster.connect(node);
    await early.registerFileServer(nodeMessage("n1"));
    const before = cluster.certificates.keeper?.material.cert ?? "";
    await writeFile(
      join(cluster.folder, "meta", "tls", "metaserver.crt"),
      await signAgain(cluster.authority, before),
    );
    await cluster.certificates.keeper?.reload();
    assert.notEqual(cluster.certificates.keeper?.material.cert, before);
    assert.equal((await early.heartbeat({ fsId: "n1", epoch: 1n })).known, true);
    assert.equal((await cluster.connect(node).heartbeat({ fsId: "n1", epoch: 1n })).known, true);
  },
);
