// Puts together what moves roots from this node and to it.
import type { AuditAct } from "#base/audit-act.ts";
import { type Clock, systemClock } from "#base/clock.ts";
import { HEARTBEAT_INTERVAL_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { NodeCertificate } from "#fileserver/control/node-certificate.ts";
import { KnownMoves, type NodeEpoch } from "#fileserver/moves/known-moves.ts";
import { MoveSource } from "#fileserver/moves/move-source.ts";
import { RootMover } from "#fileserver/moves/root-mover.ts";
import { sourceRoutes } from "#fileserver/moves/source-routes.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import type { OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import type { SubjectRegistry } from "#security/identity/subject-registry.ts";
import type { Usage } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import { RootMoves, RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { propertiesOf, takeProperties } from "./moved-properties.ts";

/** Bytes a second that a moving root takes from the network and the disk; the rest is the users'. */
export const MOVE_BYTES_PER_SECOND = 100_000_000;

/** Dependencies of the moves. */
export interface NodeMovesDeps {
  readonly storage: Storage;
  readonly quotas: QuotaStore;
  readonly subjects: SubjectRegistry;
  readonly operatorLooks: OperatorLooks;
  readonly auditLog: Pick<AuditLog, "append">;
  readonly mock: boolean;
  readonly reserveBytes: bigint;
  readonly freeBytes: () => bigint;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What is there once the node serves and has a link. */
export interface LinkedParts {
  readonly service: FileService;
  readonly channel: GrpcChannel;
  readonly certificate: NodeCertificate | undefined;
  readonly node: () => NodeEpoch | undefined;
  /** Called after a root has come or gone. */
  readonly onChange: () => void;
}

/** The moves of one node. */
export class NodeMoves {
  readonly source: MoveSource;
  readonly routes: ServiceHandlers<typeof RootSource>;
  /** True where nodes have no certificates. */
  readonly mock: boolean;
  readonly #deps: NodeMovesDeps;
  readonly #known: KnownMoves;
  #linked: LinkedParts | undefined;
  #mover: RootMover | undefined;

  constructor(deps: NodeMovesDeps) {
    this.#deps = deps;
    const { storage, clock, log } = deps;
    const audit = (act: AuditAct): void => deps.auditLog.append(act);
    this.#known = new KnownMoves(
      () => (this.#linked === undefined ? undefined : createClient(RootMoves, this.#linked.channel)),
      () => this.#linked?.node(),
      () => storage.roots().map(({ owner, usage }) => ({ owner, bytes: bytesOf(usage) })),
    );
    this.source = new MoveSource({
      moves: storage.moves,
      known: this.#known,
      propertiesOf: (owner) => propertiesOf(owner, deps),
      isServed: (owner) => storage.root(owner) !== undefined,
      audit,
      onDeparted: (owner) => {
        this.#linked?.service.usage.forget(owner);
        this.#linked?.onChange();
      },
      forgetProperties: (owner) => deps.quotas.forget(owner),
      onReturned: (owner) => this.#served(owner),
      hurry: () => this.#mover?.hurry(),
      clock,
      log,
    });
    const usedBytes = (owner: string): Promise<number> =>
      againWhenRowsCome(() => {
        const usage = storage.root(owner)?.usage;
        return usage === undefined ? 0 : bytesOf(usage);
      });
    const { mock } = deps;
    this.mock = mock;
    this.routes = sourceRoutes({
      moves: storage.moves,
      known: this.#known,
      source: this.source,
      mock,
      usedBytes,
      clock,
    });
  }

  /** Begins to follow moves. */
  start(linked: LinkedParts): void {
    this.#linked = linked;
    const { storage, reserveBytes, freeBytes, clock, log } = this.#deps;
    this.#mover = new RootMover({
      moves: storage.moves,
      known: this.#known,
      source: this.source,
      isServed: async (owner) => (await againWhenRowsCome(() => storage.root(owner))) !== undefined,
      connect: (address) => this.#connect(address, linked),
      roomFor: (bytes) => freeBytes() >= bytes + reserveBytes,
      takeProperties: (owner, properties) => takeProperties(owner, properties, this.#deps),
      audit: (act) => this.#deps.auditLog.append(act),
      onArrived: (owner) => {
        this.source.returned(owner);
        this.#served(owner);
      },
      pace: pacerOver(clock),
      clock,
      log,
    });
    this.#mover.start();
  }

  /** Ends what runs; a later process goes on. */
  async stop(): Promise<void> {
    await this.#mover?.stop();
  }

  /** A root is served here from now on. */
  #served(owner: string): void {
    const usage = this.#deps.storage.root(owner)?.usage;
    if (usage !== undefined) this.#linked?.service.usage.record(owner, usage);
    this.#linked?.service.removals.arrived(owner);
    this.#linked?.onChange();
  }

  #connect(
    address: string,
    { certificate }: LinkedParts,
  ): { readonly client: ReturnType<typeof createClient<typeof RootSource>>; close(): void } {
    const channel = new GrpcChannel({
      addresses: [address],
      ...(certificate === undefined ? {} : { tls: certificate.material }),
      keepalive: { intervalMs: HEARTBEAT_INTERVAL_MS, timeoutMs: HEARTBEAT_INTERVAL_MS },
      clock: this.#deps.clock,
    });
    return { client: createClient(RootSource, channel), close: () => channel.close() };
  }
}

function bytesOf({ liveBytes, trashBytes, stagingBytes }: Usage): number {
  return liveBytes + trashBytes + stagingBytes;
}

function pacerOver(clock: Clock = systemClock): (bytes: number) => Promise<void> {
  let freeAtMs = Number.NEGATIVE_INFINITY;
  return (bytes) => {
    const nowMs = clock.steadyMs();
    freeAtMs = Math.max(freeAtMs, nowMs) + (bytes * 1_000) / MOVE_BYTES_PER_SECOND;
    const waitMs = freeAtMs - nowMs;
    if (waitMs < 50) return Promise.resolve();
    return new Promise((resolve) => clock.after(waitMs, resolve));
  };
}
