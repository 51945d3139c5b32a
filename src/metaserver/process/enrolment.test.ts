// Joining a MetaServer with an authority, over real TLS: tokens, names, hostile servers (D20).
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { createAuthority } from "#security/authority/authority.ts";
import {
  exportPrivateKey,
  makeCertificateRequest,
  makeKeyPair,
} from "#security/authority/certificate-maker.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { HOUR_MS, has, startCluster, TIMEOUT } from "./enrolment.fixture.ts";
import { JOIN_FAILURES_PER_MINUTE_PER_ADDRESS } from "./enrolment-routes.ts";
import { joinCluster } from "./join-cluster.ts";
import { nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";

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

test(
  "a node that was taken out is refused until it has joined anew, with the same key or another (D20)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const { directory, clock } = cluster;
    const data = join(cluster.folder, "n1");
    const first = cluster.connect(await cluster.join(await cluster.token("n1"), { data }));
    await first.registerFileServer(nodeMessage("n1"));
    const remove = async (): Promise<void> => {
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.removeNode("n1")).outcome, "removed");
      await refused(
        first.registerFileServer(nodeMessage("n1")),
        Code.UNAUTHENTICATED,
        "CLIENT_CERT_REQUIRED",
      );
    };
    await remove();
    const again = await cluster.join(await cluster.token("n1"), { data, again: true });
    await cluster.connect(again).registerFileServer(nodeMessage("n1"));
    await remove();
    // It is another machine: counts of the old one do not apply.
    const other = await cluster.join(await cluster.token("n1"), { data: join(cluster.folder, "other") });
    await cluster.connect(other).registerFileServer(nodeMessage("n1"));
    clock.advance(NODE_LEASE_MS);
    await refused(first.registerFileServer(nodeMessage("n1")), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
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
  assert.deepEqual(
    cluster.audited.map(({ act, subject }) => [act, subject]),
    [["node.join", "n1"]],
  );
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
    // None of these attempts has used up the token.
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
  // It shows the true authority's certificate behind its own, which is no proof: the next connection fails.
  const chained = `${evil.certificatePem}${cluster.authority.certificatePem}`;
  await assert.rejects(joinAt(await listen(served(chained))), has("STORE_UNAVAILABLE", /not trusted|verify/));
  assert.equal(received, 0);
  await assert.rejects(
    joinAt(await listen(createNetServer((socket) => socket.destroy()))),
    has("STORE_UNAVAILABLE"),
  );
  assert.deepEqual(await readdir(join(cluster.folder, "victim", "tls")).catch(() => []), ["node.key"]);
});
