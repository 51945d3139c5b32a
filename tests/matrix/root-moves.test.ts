// Tests every operation about moving roots for every kind of caller: a root leaves for its next node alone.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock, systemClock } from "#base/clock.ts";
import type { ErrorCode } from "#base/errors.ts";
import { startTestNode } from "#fileserver/process/node.fixture.ts";
import {
  type MetaServerUnderTest,
  nodeMessage,
  startForTest,
} from "#metaserver/process/meta-server.fixture.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel, type GrpcChannelOptions } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { MoveStep, RootMoves, RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { REASON_TRAILER } from "#wire/proto/status-table.ts";

const OWNER = "owner@example.com";
const NEIGHBOUR = "neighbour@example.com";
const TIMEOUT = { timeout: 120_000 };

type Outcome = "OK" | ErrorCode;
type Tls = NonNullable<GrpcChannelOptions["tls"]>;

/** What a caller of a source says of the move. */
interface Claim {
  readonly moveId: string;
  readonly secret: string;
}

/** One call for each method: a method without one does not compile, and fails the test. */
const SOURCE_CALLS: Readonly<
  Record<
    keyof (typeof RootSource)["method"],
    (client: Client<typeof RootSource>, claim: Claim, options: CallOptions) => Promise<unknown>
  >
> = {
  beginExport: (client, claim, options) => client.beginExport(claim, options),
  pullRows: (client, claim, options) => Array.fromAsync(client.pullRows(claim, options)),
  pullChunk: (client, claim, options) =>
    Array.fromAsync(client.pullChunk({ ...claim, name: "00".repeat(16) }, options)),
  freezeRoot: (client, claim, options) => client.freezeRoot({ ...claim, attempt: 1 }, options),
  moveChanged: (client, claim, options) => client.moveChanged(claim, options),
};

const MOVE_CALLS: Readonly<
  Record<
    keyof (typeof RootMoves)["method"],
    (
      client: Client<typeof RootMoves>,
      facts: { fsId: string; epoch: bigint; moveId: string },
      options: CallOptions,
    ) => Promise<unknown>
  >
> = {
  listMoves: (client, { fsId, epoch }, options) => client.listMoves({ fsId, epoch }, options),
  advanceMove: (client, facts, options) =>
    client.advanceMove({ ...facts, step: MoveStep.PROGRESS, problem: "by the matrix" }, options),
};

const CODES: Readonly<Partial<Record<Outcome, Code>>> = {
  CLIENT_CERT_REQUIRED: Code.UNAUTHENTICATED,
  FENCED: Code.FAILED_PRECONDITION,
  NO_SUCH_PATH: Code.NOT_FOUND,
  BAD_ARGUMENT: Code.INVALID_ARGUMENT,
};

async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  try {
    await call;
    return "OK";
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    const reason = (error.metadata.get(REASON_TRAILER) ?? `no reason: ${error.message}`) as Outcome;
    assert.equal(error.code, CODES[reason], `${reason}: ${error.message}`);
    return reason;
  }
}

interface Scene {
  readonly meta: MetaServerUnderTest;
  readonly authority: Authority;
  readonly foreign: Authority;
  readonly ca: string;
  material(issuer: Authority, id: string): Promise<Tls>;
  /** A client of the node from which roots move. */
  source(tls: Tls): Client<typeof RootSource>;
  moves(tls: Tls): Client<typeof RootMoves>;
  /** What a node hears of the move of a root. */
  heard(fsId: string, owner: string): Promise<Claim & { readonly epoch: bigint }>;
  /** True while the source's store has a part of the root. */
  isHere(owner: string): boolean;
  /** Waits until the source has followed all decisions. */
  settled(count: number): Promise<void>;
}

/** A MetaServer, the node n1 with two roots, and n2 and n3 that are only registered. */
async function startScene(t: TestContext): Promise<Scene> {
  const folder = scratchFolder("grove-moves-");
  const make = async (name: string): Promise<Authority> => {
    await mkdir(join(folder, name));
    return loadOrCreateAuthority(join(folder, name), { clock: systemClock });
  };
  const [authority, foreign] = [await make("ca"), await make("foreign")];
  const ca = authority.certificatePem;
  const material = async (issuer: Authority, id: string): Promise<Tls> => {
    const { certificatePem, keyPem } = await issuer.issueNodeCertificate({
      id,
      names: ["localhost"],
      addresses: ["127.0.0.1"],
    });
    return { ca, cert: certificatePem, key: keyPem };
  };
  const own = await material(authority, "metaserver");
  const certificates = {
    renewer: undefined,
    authority,
    revocations: undefined,
    served: () => own as { cert: string; key: string; ca: string },
    onChange: () => undefined,
    isOwnName: () => false,
    close: () => Promise.resolve(),
  };
  const meta = await startForTest(t, { clock: new ManualClock(Date.now()), certificates });
  const n1 = (await material(authority, "n1")) as { cert: string; key: string; ca: string };
  const node = await startTestNode({
    // Nodes that do not say where they are need a port above 41000, which chance does not always give.
    options: {
      id: "n1",
      tls: n1,
      metaservers: [`127.0.0.1:${meta.port}`],
      advertise: "n1.example.com:50051",
    },
  });
  const channels: GrpcChannel[] = [];
  t.after(async () => {
    for (const channel of channels) channel.close();
    await node.stop();
  });
  const to = (address: string, tls: Tls): GrpcChannel => {
    const channel = new GrpcChannel({ addresses: [address], tls });
    channels.push(channel);
    return channel;
  };
  const epochs = new Map<string, bigint>();
  for (const fsId of ["n2", "n3"]) {
    const channel = to(`127.0.0.1:${meta.port}`, await material(authority, fsId));
    const { epoch } = await createClient(MetaServer, channel).registerFileServer(nodeMessage(fsId));
    epochs.set(fsId, epoch);
  }
  await until(async () => (await meta.directory.nodes()).some(({ fsId }) => fsId === "n1"));
  for (const owner of [OWNER, NEIGHBOUR]) {
    const users = new GrpcChannel({ addresses: [node.address], tls: { ca } });
    channels.push(users);
    const client = createClient(FileServer, users);
    await client.registerClient({}, { metadata: { authorization: `Bearer mock-jwt.${owner}` } });
    assert.ok(node.node.storage.root(owner) !== undefined);
    await until(async () => (await meta.directory.findRoot(owner)) !== undefined);
  }
  return {
    meta,
    authority,
    foreign,
    ca,
    material,
    source: (tls) => createClient(RootSource, to(node.address, tls)),
    moves: (tls) => createClient(RootMoves, to(`127.0.0.1:${meta.port}`, tls)),
    async heard(fsId, owner) {
      const epoch = epochs.get(fsId) ?? 0n;
      const channel = to(`127.0.0.1:${meta.port}`, await material(authority, fsId));
      const { moves } = await createClient(RootMoves, channel).listMoves({ fsId, epoch });
      const { moveId, secret } = moves.find((move) => move.owner === owner) ?? assert.fail();
      return { moveId, secret, epoch };
    },
    isHere: (owner) => node.node.storage.root(owner) !== undefined,
    async settled(count) {
      await until(() => node.node.storage.moves.list().length === count);
    },
  };
}

test("every method about moves has its row", () => {
  for (const [service, rows] of [
    [RootSource, SOURCE_CALLS],
    [RootMoves, MOVE_CALLS],
  ] as const) {
    const methods = service.methods.map(({ localName }) => localName);
    assert.deepEqual(methods.toSorted(), Object.keys(rows).toSorted());
  }
});

const bearer = (token: string): CallOptions => ({ metadata: { authorization: `Bearer ${token}` } });

/** Callers without a certificate of the cluster, whatever else they bring. */
async function outsiders({ ca, foreign, material }: Scene): Promise<[string, Tls, CallOptions][]> {
  return [
    ["no credential", { ca }, {}],
    ["the root's owner", { ca }, bearer(`mock-jwt.${OWNER}`)],
    ["an administrator", { ca }, bearer("mock-jwt.administrator@example.com")],
    ["a session token", { ca }, bearer(`sst_${"A".repeat(43)}`)],
    ["the next node's name by a foreign authority", { ...(await material(foreign, "n2")), ca }, {}],
  ];
}

test(
  "nodes hear of their own moves alone, with a certificate of the cluster and their current epoch",
  TIMEOUT,
  async (t) => {
    const scene = await startScene(t);
    const { meta, authority, material } = scene;
    await meta.directory.beginMove({ owner: OWNER, target: "n2" });
    const { moveId, epoch } = await scene.heard("n2", OWNER);
    const facts = { fsId: "n2", epoch, moveId };
    const [n1, n2, n3] = await Promise.all(["n1", "n2", "n3"].map((id) => material(authority, id)));
    const before = await meta.directory.rootMoves();
    const refusedCallers: [string, Tls, CallOptions][] = [
      ...(await outsiders(scene)),
      ["another node's certificate", n3 ?? {}, {}],
      ["the source's certificate", n1 ?? {}, {}],
    ];
    for (const [caller, tls, options] of refusedCallers) {
      for (const [method, call] of Object.entries(MOVE_CALLS)) {
        const outcome = await outcomeOf(call(scene.moves(tls), facts, options));
        assert.equal(outcome, "CLIENT_CERT_REQUIRED", `${method} by ${caller}`);
      }
    }
    const third = scene.moves(n3 ?? {});
    const asThird = { ...facts, fsId: "n3" };
    assert.deepEqual((await third.listMoves(asThird)).moves, []);
    assert.equal(await outcomeOf(MOVE_CALLS.advanceMove(third, asThird, {})), "NO_SUCH_PATH");
    const target = scene.moves(n2 ?? {});
    for (const call of Object.values(MOVE_CALLS)) {
      assert.equal(await outcomeOf(call(target, { ...facts, epoch: epoch - 1n }, {})), "FENCED");
    }
    for (const [step, outcome] of [
      [MoveStep.THAW, "BAD_ARGUMENT"],
      [MoveStep.SWITCH, "FENCED"],
      [MoveStep.END, "BAD_ARGUMENT"],
      [MoveStep.UNSPECIFIED, "BAD_ARGUMENT"],
    ] as const) {
      assert.equal(await outcomeOf(target.advanceMove({ ...facts, step })), outcome, `step ${step}`);
    }
    assert.deepEqual(await meta.directory.rootMoves(), before);
    for (const [method, call] of Object.entries(MOVE_CALLS)) {
      assert.equal(await outcomeOf(call(target, facts, {})), "OK", method);
    }
    assert.equal((await meta.directory.rootMoves())[0]?.problem, "by the matrix");
    assert.equal((await meta.directory.findRoot(OWNER))?.fsId, "n1");
  },
);

test(
  "a root's rows and chunks are for its next node alone, and with the secret of this very move",
  TIMEOUT,
  async (t) => {
    const scene = await startScene(t);
    const { meta, authority, material } = scene;
    await meta.directory.beginMove({ owner: OWNER, target: "n2" });
    await meta.directory.beginMove({ owner: NEIGHBOUR, target: "n3" });
    const [own, other] = [await scene.heard("n2", OWNER), await scene.heard("n3", NEIGHBOUR)];
    const n2 = await material(authority, "n2");
    const refusedCallers: [string, Tls, Claim, CallOptions][] = [
      ...(await outsiders(scene)).map(([who, tls, options]): [string, Tls, Claim, CallOptions] => [
        who,
        tls,
        own,
        options,
      ]),
      ["another node of the cluster", await material(authority, "n3"), own, {}],
      ["the source itself", await material(authority, "n1"), own, {}],
      ["the MetaServer", await material(authority, "metaserver"), own, {}],
      ["the next node without a secret", n2, { ...own, secret: "" }, {}],
      ["the next node with the secret of another move", n2, { ...own, secret: other.secret }, {}],
      ["the next node of another root", n2, other, {}],
      ["the next node with an unknown move", n2, { ...own, moveId: "01UNKNOWN" }, {}],
      ["the next node with no move", n2, { moveId: "", secret: "" }, {}],
      ["the next node with a cut secret", n2, { ...own, secret: own.secret.slice(0, -1) }, {}],
    ];
    for (const [caller, tls, claim, options] of refusedCallers) {
      for (const [method, call] of Object.entries(SOURCE_CALLS)) {
        const outcome = await outcomeOf(call(scene.source(tls), claim, options));
        assert.equal(outcome, "CLIENT_CERT_REQUIRED", `${method} by ${caller}`);
      }
    }
    await scene.settled(0);
    const next = scene.source(n2);
    // An attempt that the store does not know freezes nothing.
    for (const [method, call] of Object.entries(SOURCE_CALLS)) {
      const outcome = await outcomeOf(call(next, own, {}));
      assert.equal(outcome, method === "freezeRoot" ? "FENCED" : "OK", method);
    }
    await scene.settled(1);
    const receipts = Array.from({ length: 10_000 }, (_, a) => ({ a: BigInt(a), checksum: "f".repeat(64) }));
    await assert.rejects(Array.fromAsync(next.pullRows({ ...own, receipts })), tooLarge);
    await assert.rejects(next.beginExport({ ...own, secret: "f".repeat(70_000) }), tooLarge);
  },
);

test(
  "what was good for a move is good for nothing once it is undone or over, nor for the next move of the root",
  TIMEOUT,
  async (t) => {
    const scene = await startScene(t);
    const { meta, authority, material } = scene;
    const n2 = await material(authority, "n2");
    const [next, moves] = [scene.source(n2), scene.moves(n2)];
    const mustBeShut = async (claim: Claim, when: string): Promise<void> => {
      for (const [method, call] of Object.entries(SOURCE_CALLS)) {
        const outcome = await outcomeOf(call(next, claim, {}));
        // It is no secret to the node of this move that it is over.
        const isShut = outcome === "CLIENT_CERT_REQUIRED" || outcome === "FENCED";
        assert.ok(isShut || (method === "moveChanged" && outcome === "OK"), `${method} ${when}: ${outcome}`);
      }
    };
    await meta.directory.beginMove({ owner: OWNER, target: "n2" });
    const undone = await scene.heard("n2", OWNER);
    await next.beginExport(undone);
    await meta.directory.decideMove(OWNER, "undo");
    await outcomeOf(next.moveChanged(undone));
    await scene.settled(0);
    await mustBeShut(undone, "after it was undone");
    await moves.advanceMove({ fsId: "n2", ...undone, step: MoveStep.END });
    await until(async () => (await meta.directory.rootMoves()).length === 0);
    await meta.directory.beginMove({ owner: OWNER, target: "n2" });
    const second = await scene.heard("n2", OWNER);
    await mustBeShut(undone, "with a later move of the same root");
    await mustBeShut({ ...second, secret: undone.secret }, "with the secret of an earlier move");
    await scene.settled(0);
    await next.beginExport(second);
    const facts = { fsId: "n2", ...second };
    const { attempt } = await moves.advanceMove({ ...facts, step: MoveStep.FREEZE });
    await next.freezeRoot({ ...second, attempt });
    await moves.advanceMove({ ...facts, step: MoveStep.SWITCH, attempt });
    await next.moveChanged(second);
    await until(() => !scene.isHere(OWNER));
    await mustBeShut(second, "after the switch");
    await meta.directory.decideMove(OWNER, "confirm");
    await outcomeOf(next.moveChanged(second));
    await scene.settled(0);
    await mustBeShut(second, "after it was confirmed");
    const repeated = await outcomeOf(moves.advanceMove({ ...facts, step: MoveStep.FREEZE }));
    assert.equal(repeated, "BAD_ARGUMENT");
    assert.equal((await meta.directory.findRoot(OWNER))?.fsId, "n2");
    assert.equal(scene.isHere(OWNER), false);
  },
);

function tooLarge(error: unknown): boolean {
  return error instanceof StatusError && error.code === Code.RESOURCE_EXHAUSTED;
}
