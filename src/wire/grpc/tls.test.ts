// TLS: certificates of both sides, requested and not required, and renewal while streams run.
import assert from "node:assert/strict";
import { type webcrypto, X509Certificate } from "node:crypto";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { agreeOn, suitesOfTls12 } from "#testing/tls-probe.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { PeerCertificate } from "./call-context.ts";
import { createClient, GrpcChannel } from "./client.ts";
import type { ServerTls } from "./http-server.ts";
import { GrpcServer } from "./server.ts";
import type { ChannelTls } from "./transport.ts";

const TIMEOUT = { timeout: 60_000 };
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 2_048,
};

interface Authority {
  readonly pem: string;
  issue(subject: string, algorithm?: typeof ALGORITHM | typeof RSA): Promise<{ cert: string; key: string }>;
}

const pemOf = (label: string, der: ArrayBuffer): string =>
  `-----BEGIN ${label}-----\n${Buffer.from(der)
    .toString("base64")
    .replace(/(.{64})/g, "$1\n")}\n-----END ${label}-----\n`;

const authority = async (name: string): Promise<Authority> => {
  const makeKeys = (): Promise<webcrypto.CryptoKeyPair> =>
    crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const keys = await makeKeys();
  const lifetime = {
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 3_600_000),
  };
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
    ...lifetime,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  let serial = 1;
  return {
    pem: root.toString("pem"),
    async issue(subject, algorithm = ALGORITHM) {
      const usages: webcrypto.KeyUsage[] = ["sign", "verify"];
      const own = await crypto.subtle.generateKey(algorithm, true, usages);
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: `0${++serial}`,
        subject,
        issuer: root.subject,
        signingKey: keys.privateKey,
        publicKey: own.publicKey,
        signingAlgorithm: ALGORITHM,
        ...lifetime,
        extensions: [
          new x509.SubjectAlternativeNameExtension([
            { type: "dns", value: "localhost" },
            { type: "ip", value: "127.0.0.1" },
            { type: "url", value: "spiffe://cluster/node/1" },
          ]),
        ],
      });
      const key = await crypto.subtle.exportKey("pkcs8", own.privateKey);
      return { cert: certificate.toString("pem"), key: pemOf("PRIVATE KEY", key) };
    },
  };
};

const ours = await authority("Ours");
const theirs = await authority("Theirs");
const serverOne = await ours.issue("CN=server one");
const serverTwo = await ours.issue("CN=server two");

interface Lab {
  readonly server: GrpcServer;
  readonly port: number;
  /** The certificates that handlers saw, in order. */
  readonly seen: (PeerCertificate | undefined)[];
  client(tls: ChannelTls): ReturnType<typeof createClient<typeof EchoService>>;
}

const setUp = async (t: TestContext, tls: ServerTls): Promise<Lab> => {
  const seen: (PeerCertificate | undefined)[] = [];
  const server = new GrpcServer({ tls });
  server.addService(EchoService, {
    unary: (request, { peer }) => {
      assert.equal(peer.encrypted, true);
      assert.equal(peer.address, "127.0.0.1");
      seen.push(peer.certificate);
      if (peer.certificate?.authorized !== true)
        throw new StatusError(Code.UNAUTHENTICATED, "a certificate is required");
      return { text: request.text };
    },
    async *converse(requests) {
      for await (const { text } of requests) yield { text };
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return {
    server,
    port,
    seen,
    client: (given) => {
      const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`], tls: given });
      t.after(() => channel.close());
      return createClient(EchoService, channel);
    },
  };
};

const MUTUAL = { ...serverOne, ca: ours.pem, requestClientCertificate: true };

test(
  "a certificate of our authority is authorized, and the handler sees what is in it",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, MUTUAL);
    const own = await ours.issue("CN=node-1");
    assert.equal((await lab.client({ ca: ours.pem, ...own }).unary({ text: "a" })).text, "a");
    const certificate = new X509Certificate(own.cert);
    assert.equal(lab.seen[0]?.authorized, true);
    assert.equal(lab.seen[0]?.fingerprint256, certificate.fingerprint256);
    assert.match(lab.seen[0]?.subjectAltName ?? "", /URI:spiffe:\/\/cluster\/node\/1/);
    assert.equal(Buffer.compare(lab.seen[0]?.raw ?? Buffer.alloc(0), certificate.raw), 0);
  },
);

test(
  "no certificate, one of another authority and one without a subject still reach the handler, which answers",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, MUTUAL);
    const expected = { code: Code.UNAUTHENTICATED };
    await assert.rejects(lab.client({ ca: ours.pem }).unary({}), expected);
    await assert.rejects(
      lab.client({ ca: ours.pem, ...(await theirs.issue("CN=node-1")) }).unary({}),
      expected,
    );
    await assert.rejects(lab.client({ ca: ours.pem, ...(await ours.issue("")) }).unary({}), expected);
    assert.deepEqual(
      lab.seen.map((one) => one?.authorized),
      [undefined, false, undefined],
    );
  },
);

test("a server that does not ask sees no certificate", TIMEOUT, async (t) => {
  const lab = await setUp(t, { ...serverOne, ca: ours.pem });
  const own = await ours.issue("CN=node-1");
  await assert.rejects(lab.client({ ca: ours.pem, ...own }).unary({}), { code: Code.UNAUTHENTICATED });
  assert.deepEqual(lab.seen, [undefined]);
});

test("a client trusts only its authority, and only the name that it expects", TIMEOUT, async (t) => {
  const lab = await setUp(t, MUTUAL);
  await assert.rejects(lab.client({ ca: theirs.pem }).unary({}), { code: Code.UNAVAILABLE });
  await assert.rejects(lab.client({}).unary({}), { code: Code.UNAVAILABLE });
  await assert.rejects(lab.client({ ca: ours.pem, serverName: "elsewhere" }).unary({}), {
    code: Code.UNAVAILABLE,
  });
  const own = await ours.issue("CN=node-1");
  const { text } = await lab
    .client({ ca: ours.pem, serverName: "localhost", ...own })
    .unary({ text: "named" });
  assert.equal(text, "named");
});

test(
  "new certificates serve new connections, our own clients stay authorized, and no stream is dropped",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, MUTUAL);
    const own = await ours.issue("CN=node-1");
    const client = lab.client({ ca: ours.pem, ...own });
    const go = Promise.withResolvers<void>();
    const stream = client.converse(
      (async function* () {
        yield { text: "before" };
        await go.promise;
        yield { text: "after" };
      })(),
    );
    const replies = stream[Symbol.asyncIterator]();
    assert.equal((await replies.next()).value?.text, "before");
    lab.server.updateTls({ ...serverTwo, ca: ours.pem });
    const shown = await new Promise<string>((resolve, reject) => {
      const socket = connectTls(
        { port: lab.port, host: "127.0.0.1", ca: ours.pem, ALPNProtocols: ["h2"] },
        () => {
          resolve(socket.getPeerCertificate().subject.CN as string);
          socket.destroy();
        },
      );
      socket.on("error", reject);
    });
    assert.equal(shown, "server two");
    assert.equal((await lab.client({ ca: ours.pem, ...own }).unary({ text: "new" })).text, "new");
    assert.equal(lab.seen.at(-1)?.authorized, true);
    // The authority is replaced too: a certificate of the old one is not authorized.
    lab.server.updateTls({ ...serverTwo, ca: theirs.pem });
    await assert.rejects(lab.client({ ca: ours.pem, ...own }).unary({}), { code: Code.UNAUTHENTICATED });
    go.resolve();
    assert.equal((await replies.next()).value?.text, "after");
    assert.equal((await replies.next()).done, true);
  },
);

test(
  "a plain client, a client without h2 and a client that stays silent cost the TLS server nothing",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, MUTUAL);
    const plain = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`], limits: { connectMs: 2_000 } });
    t.after(() => plain.close());
    await assert.rejects(createClient(EchoService, plain).unary({}), { code: Code.UNAVAILABLE });
    const socket = connectTls({ port: lab.port, host: "127.0.0.1", ca: ours.pem });
    socket.on("error", () => undefined);
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    while (lab.server.connectionCount() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const own = await ours.issue("CN=node-1");
    assert.equal((await lab.client({ ca: ours.pem, ...own }).unary({ text: "fine" })).text, "fine");
  },
);

test("a server made without TLS cannot be given certificates", () => {
  assert.throws(() => new GrpcServer().updateTls(serverOne), TypeError);
});

test(
  "a channel given new certificates makes its next call with them, and its open stream ends well on the old connection",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, MUTUAL);
    const [one, two] = [await ours.issue("CN=node-1"), await ours.issue("CN=node-1 renewed")];
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`], tls: { ca: ours.pem, ...one } });
    t.after(() => channel.close());
    const client = createClient(EchoService, channel);
    const go = Promise.withResolvers<void>();
    const stream = client.converse(
      (async function* () {
        yield { text: "before" };
        await go.promise;
        yield { text: "after" };
      })(),
    );
    const replies = stream[Symbol.asyncIterator]();
    assert.equal((await replies.next()).value?.text, "before");
    assert.equal((await client.unary({ text: "old" })).text, "old");
    channel.updateTls({ ca: ours.pem, ...two });
    // Many at once: none may use the closing connection.
    const calls = Array.from({ length: 50 }, (_, at) => client.unary({ text: `new ${at}` }));
    assert.equal((await Promise.all(calls)).length, 50);
    const shown = lab.seen.map((certificate) => certificate?.fingerprint256);
    const [oldPrint, newPrint] = [new X509Certificate(one.cert), new X509Certificate(two.cert)].map(
      ({ fingerprint256 }) => fingerprint256,
    );
    assert.equal(shown[0], oldPrint);
    assert.deepEqual(new Set(shown.slice(1)), new Set([newPrint]));
    go.resolve();
    assert.equal((await replies.next()).value?.text, "after");
    assert.equal((await replies.next()).done, true);
    // A channel that waits between attempts tries the new certificates at once.
    await lab.server.close();
    await assert.rejects(client.unary({}), { code: Code.UNAVAILABLE });
    channel.updateTls({ ca: ours.pem, ...one });
    await assert.rejects(client.unary({}), { code: Code.UNAVAILABLE });
  },
);

test(
  "new certificates that come while a connection is being made are those it is made with",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, MUTUAL);
    const [one, two] = [await ours.issue("CN=node-1"), await ours.issue("CN=node-1 renewed")];
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`], tls: { ca: ours.pem, ...one } });
    t.after(() => channel.close());
    const call = createClient(EchoService, channel).unary({ text: "x" });
    channel.updateTls({ ca: ours.pem, ...two });
    assert.equal((await call).text, "x");
    assert.equal(lab.seen[0]?.fingerprint256, new X509Certificate(two.cert).fingerprint256);
  },
);

test(
  "a channel made without TLS cannot be given certificates, and a server speaks no TLS before 1.2 (B-11)",
  TIMEOUT,
  async (t) => {
    const channel = new GrpcChannel({ addresses: ["127.0.0.1:1"] });
    t.after(() => channel.close());
    assert.throws(() => channel.updateTls({ ca: ours.pem }), TypeError);
    const lab = await setUp(t, MUTUAL);
    const speaks = (version: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"): Promise<string> =>
      new Promise((resolve) => {
        const socket = connectTls(
          {
            port: lab.port,
            host: "127.0.0.1",
            ca: ours.pem,
            ALPNProtocols: ["h2"],
            minVersion: version,
            maxVersion: version,
            ciphers: "DEFAULT@SECLEVEL=0",
          },
          () => {
            resolve(socket.getProtocol() ?? "");
            socket.destroy();
          },
        );
        socket.on("error", () => resolve("refused"));
      });
    assert.deepEqual(
      [await speaks("TLSv1.1"), await speaks("TLSv1.2"), await speaks("TLSv1.3")],
      ["refused", "TLSv1.2", "TLSv1.3"],
    );
  },
);

test(
  "of TLS 1.2 a server takes authenticated encryption with forward secrecy alone, in its own order, with new certificates too (RFC 9113, appendix A)",
  TIMEOUT,
  async (t) => {
    for (const [kind, algorithm] of [
      ["ECDSA", ALGORITHM],
      ["RSA", RSA],
    ] as const) {
      const certificate = await ours.issue("CN=server", algorithm);
      const lab = await setUp(t, { ...certificate, ca: ours.pem });
      for (const look of ["made", "updated"]) {
        const options = { ALPNProtocols: ["h2"] };
        assert.deepEqual(
          await suitesOfTls12(lab.port, options),
          [
            `ECDHE-${kind}-AES256-GCM-SHA384`,
            `ECDHE-${kind}-CHACHA20-POLY1305`,
            `ECDHE-${kind}-AES128-GCM-SHA256`,
          ],
          look,
        );
        const others = { ...options, ecdhCurve: "secp521r1" };
        assert.equal(await agreeOn(lab.port, others), undefined);
        lab.server.updateTls({ ...certificate, ca: ours.pem });
      }
    }
  },
);

test("X25519 goes before other curves, and its hybrid with ML-KEM before it", TIMEOUT, async (t) => {
  const lab = await setUp(t, MUTUAL);
  const options = { ALPNProtocols: ["h2"] };
  const groupOf = async (groups: string, version: "TLSv1.2" | "TLSv1.3"): Promise<string | undefined> =>
    (await agreeOn(lab.port, { ...options, ecdhCurve: groups, maxVersion: version }))?.group;
  assert.equal(await groupOf("prime256v1:secp384r1:X25519", "TLSv1.2"), "X25519");
  assert.equal(await groupOf("prime256v1", "TLSv1.2"), "prime256v1");
  assert.equal(await groupOf("auto", "TLSv1.3"), "X25519MLKEM768");
  assert.equal(await groupOf("X25519:prime256v1", "TLSv1.3"), "X25519");
});

test(
  "a channel offers no other suites than those, and reaches a server that has one of them",
  TIMEOUT,
  async (t) => {
    const own = await ours.issue("CN=node-1");
    const offer = async (ciphers: string): Promise<string> => {
      const server = createSecureServer({ ...serverOne, ciphers, maxVersion: "TLSv1.2" });
      server.on("sessionError", () => undefined);
      server.on("stream", (stream: ServerHttp2Stream) =>
        stream.respond({ ":status": 415 }, { endStream: true }),
      );
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`], tls: { ca: ours.pem, ...own } });
      t.after(() => {
        channel.close();
        server.close();
      });
      const error: unknown = await createClient(EchoService, channel)
        .unary({}, { timeoutMs: 5_000 })
        .catch((failure: unknown) => failure);
      return String(error);
    };
    assert.match(await offer("ECDHE-ECDSA-AES128-SHA256"), /cannot connect/);
    assert.doesNotMatch(await offer("ECDHE-ECDSA-AES128-GCM-SHA256"), /cannot connect/);
  },
);
