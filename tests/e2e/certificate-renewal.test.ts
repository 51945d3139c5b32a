// Tests that renewals of every server's certificate fail no call and drop no stream.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { groveOk, startCertificateCluster } from "./certificate-cluster.ts";

/** About 26 seconds: a renewal every 17. */
const CERT_DAYS = 0.0003;
/** More renewals: GROVE_E2E_ROUNDS=5 node --test tests/e2e/certificate-renewal.test.ts */
const RENEWALS = Number(process.env["GROVE_E2E_ROUNDS"] ?? 1);
const CHUNK_BYTES = 1_000_000;
const STREAM_CHUNKS = 60;
/** Other clients' calls between two chunks of the slow download: half a second or more. */
const PACE_CALLS = 200;

const serialAt = (port: number, ca: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["h2"] }, () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber ?? "");
      socket.destroy();
    });
    socket.on("error", reject);
  });

test("certificates are renewed under load, by themselves, by the operator and half-written: no call fails (B-11)", {
  timeout: 150_000 + RENEWALS * 30_000,
}, async (t) => {
  const cluster = await startCertificateCluster(t, scratchFolder("grove-e2e-"), CERT_DAYS);
  const node = await cluster.addNode("n1");
  const tls = { ca: cluster.caPem };
  const shared = new GrpcChannel({ addresses: [node.address], tls });
  t.after(() => {
    shared.close();
    return Promise.resolve();
  });
  const files = createClient(FileServer, shared);
  const { sessionToken } = await files.registerClient(
    {},
    { metadata: { authorization: "Bearer mock-jwt.a@example.com" } },
  );
  const session = { metadata: { authorization: `Bearer ${sessionToken}` } };
  const first = {
    node: await serialAt(node.port, cluster.caPem),
    meta: await serialAt(cluster.metaserver.port, cluster.caPem),
  };
  const bytes = randomBytes(CHUNK_BYTES);
  await files.uploadFile(
    (async function* () {
      yield { part: { case: "header" as const, value: { path: "/big" } } };
      for (let at = 0; at < STREAM_CHUNKS; at++) {
        yield { part: { case: "chunk" as const, value: { offset: BigInt(at * CHUNK_BYTES), data: bytes } } };
      }
    })(),
    session,
  );
  const over = new AbortController();
  let calls = 0;
  let connections = 0;
  const failures: string[] = [];
  const counted = async (call: () => Promise<unknown>): Promise<void> => {
    try {
      await call();
      calls++;
    } catch (error) {
      failures.push(String(error));
    }
  };
  const onOneConnection = async (name: string): Promise<void> => {
    for (let at = 0; !over.signal.aborted; at++) {
      await counted(() =>
        files.createFile({ path: `/${name}${at}`, data: bytes.subarray(0, 1_000) }, session),
      );
      await counted(() => files.getAttr({ path: `/${name}${at}` }, session));
      // The test needs renewals, not speed: other tests get the machine.
      await sleep(5);
    }
  };
  const onNewConnections = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const channel = new GrpcChannel({ addresses: [node.address], tls });
      await counted(() => createClient(FileServer, channel).getAttr({ path: "/big" }, session));
      connections++;
      channel.close();
      await sleep(20);
    }
  };
  /** A download that is read so slowly that renewals happen during it. */
  const onOneStream = async (): Promise<void> => {
    let received = 0;
    await counted(async () => {
      for await (const message of files.downloadFile({ path: "/big" }, session)) {
        if (message.part.case === "chunk") received += message.part.value.data.length;
        const then = calls;
        await until(() => over.signal.aborted || calls > then + PACE_CALLS);
      }
    });
    assert.equal(received, STREAM_CHUNKS * CHUNK_BYTES);
  };
  const load = [onOneConnection("a"), onOneConnection("b"), onNewConnections(), onOneStream()];
  const renewed = (program: { output(): string }): number =>
    program.output().split('"why":"renewed"').length - 1;
  await until(() => renewed(node) >= RENEWALS && renewed(cluster.metaserver) >= RENEWALS);
  // A manual renewal: half a file first, then the whole, and SIGHUP both times.
  const path = join(node.data, "tls", "node.crt");
  await groveOk(["ca", "renew", "n1", "-ca_dir", cluster.caDir, "-out", cluster.folder]);
  const whole = await readFile(join(cluster.folder, "n1.crt"), "utf8");
  await writeFile(path, whole.slice(0, whole.length / 2));
  node.child.kill("SIGHUP");
  await node.says(/certificate_files_unusable/);
  await writeFile(path, whole);
  node.child.kill("SIGHUP");
  await node.says(/"why":"files"/);
  const [callsThen, connectionsThen] = [calls, connections];
  await until(() => calls > callsThen + 50 && connections > connectionsThen + 5);
  over.abort();
  await Promise.all(load);

  assert.deepEqual(failures, []);
  assert.ok(calls > 100 && connections > 10, `${calls} calls over ${connections} connections`);
  t.diagnostic(
    `${calls} calls, ${connections} connections, ${renewed(node)} and ${renewed(cluster.metaserver)} renewals, 0 failed`,
  );
  assert.notEqual(await serialAt(node.port, cluster.caPem), first.node);
  assert.notEqual(await serialAt(cluster.metaserver.port, cluster.caPem), first.meta);
  // The control plane also switched to the new certificate: one registration, no lost heartbeat.
  assert.doesNotMatch(node.output(), /metaserver_failed|fenced/);
  assert.equal(cluster.metaserver.output().split("node_registered").length - 1, 1);
});
