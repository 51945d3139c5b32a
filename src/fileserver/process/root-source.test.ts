// Tests of the callers to whom a node gives the rows and chunks of a moving root: its next node alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { RootMoves, RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { startTestNode, type TestNode } from "./node.fixture.ts";

const OWNER = "a@example.com";
const SECRET = "5ec3e7".repeat(5);
const MOVE = {
  moveId: "01MOVE",
  owner: OWNER,
  source: "n1",
  target: "n2",
  state: "copying",
  number: 1_048_600,
  secret: SECRET,
  otherAddress: "127.0.0.1:1",
};

type Material = { readonly cert: string; readonly key: string; readonly ca: string };

let authority: Authority;
let meta: GrpcServer;
let node: TestNode;

async function material(id: string, from: Authority = authority): Promise<Material> {
  const issued = await from.issueNodeCertificate({ id, names: ["localhost"], addresses: ["127.0.0.1"] });
  return { cert: issued.certificatePem, key: issued.keyPem, ca: authority.certificatePem };
}

before(async () => {
  authority = await loadOrCreateAuthority(scratchFolder("grove-moves-"), { clock: systemClock });
  meta = new GrpcServer({ tls: { ...(await material("meta")), requestClientCertificate: true } });
  meta.addService(MetaServer, {
    registerFileServer: () => ({ clusterId: "c1", heartbeatSeconds: 5, epoch: 1n }),
    heartbeat: () => ({ known: true }),
    claimRoot: () => ({ rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", fsId: "n1", address: "" }),
  });
  meta.addService(RootMoves, { listMoves: () => ({ moves: [MOVE] }) });
  const { port } = await meta.listen({ host: "127.0.0.1", port: 0 });
  const options = { id: "n1", tls: await material("n1"), metaservers: [`127.0.0.1:${port}`] };
  node = await startTestNode({ options });
  await node.node.storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
});
after(async () => {
  await node.stop();
  await meta.close();
});

/** Every method, asked with a secret. */
function asked(client: Client<typeof RootSource>, secret: string): (() => Promise<unknown>)[] {
  const move = { moveId: MOVE.moveId, secret };
  return [
    () => client.beginExport(move),
    () => Array.fromAsync(client.pullRows(move)),
    () => Array.fromAsync(client.pullChunk({ ...move, name: "00".repeat(16) })),
    () => client.freezeRoot({ ...move, attempt: 1 }),
    () => client.moveChanged(move),
  ];
}

async function refusedWith(tls: Partial<Material>, secret: string): Promise<void> {
  const channel = new GrpcChannel({
    addresses: [node.address],
    tls: { ca: authority.certificatePem, ...tls },
  });
  try {
    for (const [index, call] of asked(createClient(RootSource, channel), secret).entries()) {
      await assert.rejects(
        call,
        (error) => {
          assert.ok(error instanceof StatusError, String(error));
          assert.equal(error.code, Code.UNAUTHENTICATED, error.message);
          return true;
        },
        `call ${index} of ${tls.cert === undefined ? "nobody" : "a certificate"}`,
      );
    }
  } finally {
    channel.close();
  }
}

test("a root is given to nobody without a certificate of the cluster, though the secret is right", async () => {
  await refusedWith({}, SECRET);
  const other = await loadOrCreateAuthority(scratchFolder("grove-other-"), { clock: systemClock });
  const { cert, key } = await material("n2", other);
  await refusedWith({ cert, key }, SECRET);
});

test("another node of the cluster gets nothing, and neither does the next one without the secret", async () => {
  await refusedWith(await material("n3"), SECRET);
  await refusedWith(await material("n2"), "");
  await refusedWith(await material("n2"), `${SECRET.slice(1)}0`);
});

test("the next node pulls rows; an attempt that the store does not know freezes nothing", async () => {
  const channel = new GrpcChannel({ addresses: [node.address], tls: await material("n2") });
  try {
    const client = createClient(RootSource, channel);
    const move = { moveId: MOVE.moveId, secret: SECRET };
    assert.ok((await client.beginExport(move)).number > 0);
    const pieces = await Array.fromAsync(client.pullRows(move));
    assert.match(Buffer.concat(pieces.map(({ piece }) => piece)).toString(), /"buckets":\[\{"kind":0/);
    await assert.rejects(
      client.freezeRoot({ ...move, attempt: 1 }),
      (error) => error instanceof StatusError && error.code === Code.FAILED_PRECONDITION,
    );
  } finally {
    channel.close();
  }
});
