// Two nodes of one cluster with real stores and connections, between which roots move on a clock of the test.
import type { TestContext } from "node:test";
import type { AuditAct } from "#base/audit-act.ts";
import { type Clock, ManualClock, systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import type { RootMove, MoveStep as Step } from "#metaserver/directory/root-move.ts";
import { Side } from "#storage/local/moved-root.fixture.ts";
import { OWNER } from "#storage/local/store.fixture.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import { GrpcServer } from "#wire/grpc/server.ts";

import {
  type AdvanceMoveRequest,
  MoveStep,
  RootMoves,
  RootSource,
} from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import { KnownMoves } from "./known-moves.ts";
import { type MovedProperties, MoveSource } from "./move-source.ts";
import { RootMover } from "./root-mover.ts";
import { sourceRoutes } from "./source-routes.ts";

/** The cluster's part of the test, in which a test may put faults. */
export interface Faults {
  /** Called before a step reaches the metadata store, and after it was taken there; throws what the node gets. */
  before?: (step: Step["step"]) => void;
  after?: (step: Step["step"]) => void;
  /** Called with a node's id before it gets a list of moves, which is made already. */
  listed?: (fsId: string) => Promise<void>;
  /** Changes the bytes of a chunk on their way. */
  chunk?: (data: Uint8Array) => Uint8Array;
  /** Waited for before a chunk is sent. */
  beforeChunk?: () => Promise<void>;
  /** Free bytes at the target; unlimited by default. */
  room?: bigint;
  /** True where the target has lost what it serves. */
  isGone?: boolean;
  /** Bytes of the root, as its source tells; 1,000 by default. */
  usedBytes?: number;
}

/** One of the two nodes. */
export interface MovingNode {
  readonly side: Side;
  readonly source: MoveSource;
  readonly mover: RootMover;
  /** What came along with roots, in order. */
  readonly taken: readonly (readonly [string, MovedProperties])[];
  /** Owners of roots of which nothing stays at this node. */
  readonly forgotten: readonly string[];
  /** Lines of its audit log. */
  readonly acts: readonly string[];
}

/** The cluster. */
export interface TwoNodes {
  readonly directory: Directory;
  readonly from: MovingNode;
  readonly to: MovingNode;
  readonly faults: Faults;
  /** Passes time of the nodes, a look's pause by default. */
  pass(ms?: number): void;
  /** Waits until the store shows the owner's move so, while the nodes look again and again. */
  reaches(is: (move: RootMove | undefined) => boolean): Promise<RootMove | undefined>;
}

const STEPS: Readonly<Record<number, (request: AdvanceMoveRequest) => Step>> = {
  [MoveStep.FREEZE]: () => ({ step: "freeze" }),
  [MoveStep.THAW]: ({ attempt }) => ({ step: "thaw", attempt }),
  [MoveStep.SWITCH]: ({ attempt }) => ({ step: "switch", attempt }),
  [MoveStep.RECALL]: ({ owner, arriving: isArriving }) => ({ step: "recall", owner, isArriving }),
  [MoveStep.END]: () => ({ step: "end" }),
  [MoveStep.ADOPT]: () => ({ step: "adopt" }),
};

/** Starts both; the first holds the root of the fixture's owner once the test has filled it. */
export async function startTwoNodes(
  context: TestContext,
  fill: (side: Side) => Promise<void>,
  storeClock: Clock = systemClock,
): Promise<TwoNodes> {
  const clock = new ManualClock();
  const directory = await openDirectory(`sqlite:${scratchFolder("two-nodes-")}/metadata.db`, {
    clock: storeClock,
  });
  const faults: Faults = {};
  const meta = new GrpcServer({ mapError });
  meta.addService(RootMoves, storeRoutes(directory, faults));
  const { port } = await meta.listen({ host: "127.0.0.1", port: 0 });
  const closers: (() => Promise<void> | void)[] = [];
  const start = async (fsId: string): Promise<MovingNode> => {
    const side = await Side.open(context);
    if (fsId === "a") await fill(side);
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    const { moves } = side.storage;
    let epoch = 0;
    const known = new KnownMoves(
      () => createClient(RootMoves, channel),
      () => ({ fsId, epoch: BigInt(epoch) }),
      () => side.storage.roots().map(({ owner, usage }) => ({ owner, bytes: usage.liveBytes })),
    );
    const acts: string[] = [];
    const forgotten: string[] = [];
    const audit = ({ act, subject }: AuditAct): void => void acts.push(`${act} ${subject}`);
    const common = { moves, known, clock, log: silentLogger, audit };
    const source = new MoveSource({
      ...common,
      propertiesOf: () => ({ quotaBytes: "77000000", inodeLimit: 4_321 }),
      isServed: (owner) => side.storage.root(owner) !== undefined,
      onReturned: () => undefined,
      onDeparted: () => undefined,
      forgetProperties: async (owner) => void forgotten.push(owner),
      hurry: () => mover.hurry(),
    });
    const server = new GrpcServer({ mapError });
    const routes = sourceRoutes({
      ...common,
      source,
      mock: true,
      usedBytes: async () => faults.usedBytes ?? 1_000,
    });
    server.addService(RootSource, withFaults(routes, faults));
    const listening = await server.listen({ host: "127.0.0.1", port: 0 });
    const held = { owner: OWNER, rootId: "01ROOT", version: 1n, grants: [] };
    const roots = fsId === "a" ? [held] : [];
    ({ epoch } = await directory.register(nodeOf(fsId, `127.0.0.1:${listening.port}`, roots)));
    const taken: (readonly [string, MovedProperties])[] = [];
    const mover = new RootMover({
      ...common,
      source,
      isServed: async (owner) => faults.isGone !== true && side.storage.root(owner) !== undefined,
      connect: (address) => {
        const link = new GrpcChannel({ addresses: [address] });
        return { client: createClient(RootSource, link), close: () => link.close() };
      },
      roomFor: (bytes) => faults.room === undefined || bytes <= faults.room,
      takeProperties: async (owner, properties) => {
        taken.push([owner, properties]);
      },
      onArrived: () => undefined,
      pace: async () => undefined,
    });
    mover.start();
    closers.push(
      () => mover.stop(),
      () => server.close(),
      () => channel.close(),
      () => side.storage.close(),
    );
    return { side, source, mover, taken, acts, forgotten };
  };
  const [from, to] = [await start("a"), await start("b")];
  context.after(async () => {
    for (const close of closers) await close();
    await meta.close();
    await directory.close();
  });
  const reaches: TwoNodes["reaches"] = async (is) => {
    let last: RootMove | undefined;
    await until(async () => {
      clock.advance(200);
      last = (await directory.rootMoves()).find(({ owner }) => owner === OWNER);
      return is(last);
    }, "the move");
    return last;
  };
  return { directory, from, to, faults, pass: (ms = 200) => clock.advance(ms), reaches };
}

/** The registration of a node, which keeps its epoch. */
export function nodeOf(
  fsId: string,
  address: string,
  roots: Parameters<Directory["register"]>[0]["roots"],
): Parameters<Directory["register"]>[0] {
  return {
    fsId,
    name: fsId,
    address,
    softwareVersion: "0.1.0",
    clusterId: "",
    instanceId: `instance of ${fsId}`,
    dataId: `data of ${fsId}`,
    diskTotalBytes: 2n ** 40n,
    diskFreeBytes: 2n ** 39n,
    diskReserveBytes: 0n,
    roots,
    speaker: { kind: "mock" },
  };
}

function storeRoutes(directory: Directory, faults: Faults): ServiceHandlers<typeof RootMoves> {
  const caller = ({ fsId, epoch }: { readonly fsId: string; readonly epoch: bigint }) => ({
    fsId,
    epoch: Number(epoch),
    speaker: { kind: "mock" } as const,
  });
  return {
    async listMoves(request) {
      const { sizesOf, sizesPage: page, sizesLast: isLast } = request;
      const sizes = request.sizes.map(({ owner, bytes }) => ({ owner, bytes: Number(bytes) }));
      const told = { question: Number(sizesOf), page, isLast, sizes };
      if (sizesOf > 0n) await directory.noteRootSizes(caller(request), told);
      const sizesWanted = BigInt(await directory.sizesWanted());
      const moves = await directory.movesOf(caller(request));
      await faults.listed?.(request.fsId);
      return { moves, sizesWanted };
    },
    async advanceMove(request) {
      const [bytes, rows, left] = [request.bytes, request.rows, request.left].map(Number);
      const { problem } = request;
      const progress = { step: "progress", bytes: bytes ?? 0, rows: rows ?? 0, left: left ?? 0 } as const;
      const step = STEPS[request.step]?.(request) ?? { ...progress, problem };
      faults.before?.(step.step);
      const { state, attempt } = await directory.advanceMove(caller(request), request.moveId, step);
      faults.after?.(step.step);
      return { state, attempt };
    },
  };
}

function withFaults(
  routes: ServiceHandlers<typeof RootSource>,
  faults: Faults,
): ServiceHandlers<typeof RootSource> {
  const { pullChunk } = routes;
  if (typeof pullChunk !== "function") return routes;
  return {
    ...routes,
    async *pullChunk(request, context) {
      await faults.beforeChunk?.();
      for await (const piece of pullChunk(request, context)) {
        const data = piece.data ?? new Uint8Array();
        yield faults.chunk === undefined ? piece : { ...piece, data: faults.chunk(data) };
      }
    },
  };
}
