// What every FileServer process of the rig has: the product's link to the MetaServer, and its moves.
import { silentLogger } from "#base/log.ts";
import { MetaLink } from "#fileserver/control/meta-link.ts";
import { ShareReplicator, type ShareReplicatorDeps } from "#fileserver/control/share-replicator.ts";
import { KnownMoves } from "#fileserver/moves/known-moves.ts";
import { MoveSource } from "#fileserver/moves/move-source.ts";
import { RootMover } from "#fileserver/moves/root-mover.ts";
import { sourceRoutes } from "#fileserver/moves/source-routes.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { RootMoveStorage } from "#storage/contract/root-move.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { RootMoves, RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { clientOf, type Served, type Way } from "./calls.ts";
import type { SimulatedMetaServer } from "./meta-server.ts";
import type { ProcessClock } from "./world.ts";

const GIBIBYTE = 2n ** 30n;

/** What a node keeps over its processes. */
export interface NodeFolder {
  readonly id: string;
  /** host:port, under which other nodes find its process. */
  readonly address: string;
  readonly isOnEngine: boolean;
  /** The process that registered last. */
  lastProcess: string;
  clusterId: string;
}

/** Ways from a machine. */
export interface Ways {
  readonly database: Way;
  readonly meta: Way;
  readonly peers: Way;
}

/** What a process is put together from. */
export interface ProcessDeps {
  readonly name: string;
  readonly folder: NodeFolder;
  readonly clock: ProcessClock;
  readonly ways: Ways;
  readonly random: SeededRandom;
  readonly meta: SimulatedMetaServer;
  readonly find: (address: string) => Served | undefined;
}

/** A root as a process lists it. */
export interface ListedRoot {
  readonly owner: string;
  readonly number: number;
  readonly rootId: string;
  readonly leaseEpoch?: number;
}

/** What the process serves. */
export interface ServedRoots {
  readonly moves: RootMoveStorage;
  readonly roots: () => readonly ListedRoot[];
  readonly onFenced: () => void;
}

/** The link and the moves of one process. */
export class ProcessMoves {
  readonly source: MoveSource;
  readonly handlers: Served["handlers"];
  readonly link: MetaLink;
  readonly #mover: RootMover;

  constructor(deps: ProcessDeps, { moves, roots, onFenced }: ServedRoots) {
    const { name, folder, clock, ways, random, meta, find } = deps;
    const log = silentLogger;
    const onMeta = { clock, way: ways.meta, random: random.fork("meta") };
    const known = new KnownMoves(
      () => clientOf(RootMoves, onMeta, () => meta.served),
      () => (this.link.epoch === undefined ? undefined : { fsId: folder.id, epoch: this.link.epoch }),
      () => [],
    );
    const common = { moves, known, clock, log, audit: () => undefined };
    this.source = new MoveSource({
      ...common,
      propertiesOf: () => ({ quotaBytes: "1", inodeLimit: 1 }),
      isServed: () => false,
      onReturned: () => undefined,
      forgetProperties: async () => undefined,
      onDeparted: () => this.link.beatSoon(),
      hurry: () => this.#mover.hurry(),
    });
    this.handlers = sourceRoutes({ ...common, source: this.source, mock: true, usedBytes: async () => 1 });
    const onPeers = { clock, way: ways.peers, random: random.fork("peers") };
    this.#mover = new RootMover({
      ...common,
      source: this.source,
      // One that has moved to the engine may be with another of its nodes.
      isServed: () => Promise.resolve(true),
      connect: (address) => ({
        client: clientOf(RootSource, onPeers, () => find(address)),
        close: () => undefined,
      }),
      roomFor: () => true,
      takeProperties: async () => undefined,
      onArrived: (owner) => {
        this.source.returned(owner);
        this.link.beatSoon();
      },
      pace: async () => undefined,
    });
    const storage = {
      roots: () =>
        roots().map(({ owner, number, rootId, leaseEpoch }) => ({
          owner,
          rootId,
          accessVersion: 1,
          directoryId: number * 2 ** 32 + 1,
          ...(leaseEpoch === undefined ? {} : { leaseEpoch }),
        })),
      shares: { all: () => new Map(), onChange: () => undefined },
      renamedUpTo: () => 0,
      moves,
    };
    const client = clientOf(MetaServer, onMeta, () => meta.served);
    this.link = new MetaLink({
      client,
      node: {
        id: folder.id,
        name: folder.id,
        address: folder.address,
        instanceId: name,
        dataId: `data-${folder.id}`,
        reserveBytes: 0n,
        onEngine: folder.isOnEngine,
      },
      cluster: {
        clusterId: folder.clusterId,
        lastProcess: folder.lastProcess,
        remember: async (clusterId) => void (folder.clusterId = clusterId),
        registered: async (instanceId) => void (folder.lastProcess = instanceId),
      },
      shares: new ShareReplicator({
        storage,
        client,
        fsId: folder.id,
        clock,
        log,
      } as unknown as ShareReplicatorDeps),
      rootCount: () => roots().length,
      subjectOf: () => undefined,
      diskSpace: () => ({ totalBytes: 2n * GIBIBYTE, freeBytes: GIBIBYTE }),
      isDraining: () => false,
      onFenced,
      clock,
      random: () => random.next(),
      log,
    });
  }

  /** Registers, and begins to follow moves. */
  async start(): Promise<void> {
    await this.link.start();
    this.#mover.start();
  }
}
