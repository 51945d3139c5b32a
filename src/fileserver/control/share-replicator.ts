// Replicates a node's shares to the MetaServer: all at registration, then changes until acknowledged (D19).

import type { Clock } from "#base/clock.ts";
import type { ErrorCode } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS, PATH_MAX_BYTES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { RootRecord, SharedPath, Storage } from "#storage/contract/storage.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { reasonOf } from "./refusal-reason.ts";
import { type GoneRoot, grantBytes, type ListedRoot } from "./registration-pages.ts";

/** Bytes of one root's shares in a registration; a root with more sends them one by one afterwards. */
export const REGISTERED_GRANTS_MAX_BYTES = 262_144;
/** How long Share waits for the MetaServer, so that the other user finds the way; it is sent anyway. */
const SHARE_TOLD_WAIT_MS = 1_000;

/** Dependencies of the replicator. */
export interface ShareReplicatorDeps {
  readonly client: Pick<Client<typeof MetaServer>, "rootShare" | "rootUnshare">;
  readonly fsId: string;
  readonly storage: Pick<Storage, "moves" | "renamedUpTo" | "root" | "roots" | "shares">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The roots of a registration, and the grants that its answer acknowledges. */
export interface RootList {
  readonly roots: ListedRoot[];
  /** Version of the last changed address that the list has carried out. */
  readonly namesVersion: bigint;
  /** Grants by owner; a root is missing when its grants had no room and must follow. */
  readonly told: ReadonlyMap<string, ReadonlyMap<string, SharedPath>>;
  readonly toFollow: readonly string[];
  /** Roots that have left this node for good. */
  readonly departed: readonly GoneRoot[];
}

/** A grant that the MetaServer knows, or may know. */
interface ToldGrant {
  readonly grant: SharedPath;
  /** False from the start of a call about it until the answer: after a lost answer its state is unknown. */
  readonly isSure: boolean;
}

/** Reasons of refusals that pass with time: the call is repeated later. */
const PASSING: ReadonlySet<ErrorCode | undefined> = new Set([
  undefined,
  "FENCED",
  "OVERLOADED",
  "STARTING",
  "STORE_UNAVAILABLE",
]);

/**
 * Sends the difference between the grants in storage, which are durable, and those acknowledged to this
 * process (M-01). An unanswered grant is sent again, or its end. No restart of either side loses anything,
 * since a registration sends everything.
 */
export class ShareReplicator {
  readonly #deps: ShareReplicatorDeps;
  /** By owner, the grants that the MetaServer may list: all present ones, and one that has just ended. */
  #told = new Map<string, Map<string, ToldGrant>>();
  readonly #changed = new Set<string>();
  #epoch: bigint | undefined;
  #telling: Promise<unknown> | undefined;
  #isReached = false;
  /** True during a registration, which ends the epoch of running calls. */
  #isPaused = false;
  #onRefused: (error: unknown) => void = () => undefined;

  constructor(deps: ShareReplicatorDeps) {
    this.#deps = deps;
    deps.storage.shares.onChange((owners) => {
      for (const owner of owners) this.#changed.add(owner);
      if (this.#isReached) this.tell();
    });
  }

  /** Called for each failure whose reason concerns the node and not the grant. */
  set onRefused(callback: (error: unknown) => void) {
    this.#onRefused = callback;
  }

  /** Pauses for a registration and resolves with its list; `registered` or the next contact ends that. */
  async pause(): Promise<RootList> {
    this.#isPaused = true;
    await this.#telling;
    return againWhenRowsCome(() => this.#list());
  }

  /** Records an answered registration; later changes follow. */
  registered(epoch: bigint, list: RootList): void {
    this.#epoch = epoch;
    this.#told = new Map([...list.told].map(([owner, grants]) => [owner, surely(grants)]));
    for (const owner of list.toFollow) this.#changed.add(owner);
    this.reached();
  }

  /** Records an answered heartbeat or registration: waiting changes are sent. */
  reached(): void {
    this.#isPaused = false;
    this.#isReached = true;
    this.tell();
  }

  /** Records a silent MetaServer: changes wait until it answers. */
  lost(): void {
    this.#isReached = false;
  }

  /** Starts sending, unless it runs already. */
  tell(): void {
    if (
      this.#epoch === undefined ||
      this.#isPaused ||
      this.#telling !== undefined ||
      this.#changed.size === 0
    )
      return;
    this.#telling = this.#tellAll().finally(() => {
      this.#telling = undefined;
    });
  }

  /** Resolves when the MetaServer has acknowledged a root's grants, or its time is over. Never rejects. */
  async told(owner: string): Promise<void> {
    if (!this.#isReached || this.#telling === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(SHARE_TOLD_WAIT_MS, resolve);
    const heard = (): void => {
      if (this.#telling === undefined || !this.#changed.has(owner)) resolve();
    };
    void this.#telling.then(heard, resolve);
    await promise;
    cancel();
  }

  /** Stops sending; resolves when no call is under way. */
  async stop(): Promise<void> {
    this.#isPaused = true;
    await this.#telling;
  }

  /** All roots with their grants, as of now. */
  #list(): RootList {
    const { storage } = this.#deps;
    const shares = storage.shares.all();
    const told = new Map<string, Map<string, SharedPath>>();
    const toFollow: string[] = [];
    const arrivals = storage.moves.arrivals();
    const roots = storage.roots().map((root) => {
      const grants = tellable(shares.get(root.owner) ?? []);
      const all = [...grants.values()].map(({ path, username }) => ({ path, user: username }));
      const fits = grantBytes(all) <= REGISTERED_GRANTS_MAX_BYTES;
      if (!fits) toFollow.push(root.owner);
      else if (grants.size > 0) told.set(root.owner, grants);
      return {
        owner: root.owner,
        rootId: root.rootId,
        version: BigInt(root.accessVersion),
        grants: fits ? all : [],
        leaseEpoch: BigInt(root.leaseEpoch ?? 0),
        rootNumber: rootNumberOf(root.directoryId),
        ...(arrivals === undefined ? {} : { arrival: arrivals.get(root.rootId) ?? "" }),
      };
    });
    const departed = storage.moves
      .departedRoots()
      .flatMap(({ rootId, target: fsId, moveId }) => (fsId === "" ? [] : [{ rootId, fsId, moveId }]));
    return { roots, told, toFollow, departed, namesVersion: BigInt(storage.renamedUpTo()) };
  }

  /** Never rejects. Ends when nothing is left to send, or when the MetaServer does not take it now. */
  async #tellAll(): Promise<void> {
    for (const owner of this.#changed) {
      if (this.#isPaused) return;
      try {
        if (!(await this.#tellOne(owner))) this.#changed.add(owner);
      } catch (error) {
        this.#changed.add(owner);
        this.lost();
        this.#deps.log.warn("share_not_told", { reason: reasonOf(error), error: errorText(error) });
        this.#onRefused(error);
        return;
      }
    }
  }

  /** False when it was paused before the end. */
  async #tellOne(owner: string): Promise<boolean> {
    // A later change adds it again.
    this.#changed.delete(owner);
    const { storage } = this.#deps;
    const root = storage.root(owner);
    if (root === undefined) return true;
    const wanted = tellable(storage.shares.ofRoot(owner));
    const told = this.#told.get(owner) ?? new Map<string, ToldGrant>();
    this.#told.set(owner, told);
    for (const [key, { grant }] of told) {
      if (wanted.has(key)) continue;
      if (this.#isPaused) return false;
      told.set(key, { grant, isSure: false });
      await this.#call("rootUnshare", root, grant);
      told.delete(key);
    }
    for (const [key, grant] of wanted) {
      if (told.get(key)?.isSure === true) continue;
      if (this.#isPaused) return false;
      told.set(key, { grant, isSure: false });
      await this.#call("rootShare", root, grant);
      told.set(key, { grant, isSure: true });
    }
    if (told.size === 0) this.#told.delete(owner);
    return true;
  }

  async #call(method: "rootShare" | "rootUnshare", root: RootRecord, grant: SharedPath): Promise<void> {
    const { client, fsId, log, storage } = this.#deps;
    const { owner, accessVersion } = root;
    const { path, username: user } = grant;
    const version = BigInt(accessVersion);
    const namesVersion = BigInt(storage.renamedUpTo());
    try {
      await client[method](
        { owner, path, user, fsId, version, epoch: this.#epoch ?? 0n, namesVersion },
        { timeoutMs: HEARTBEAT_INTERVAL_MS },
      );
    } catch (error) {
      if (PASSING.has(reasonOf(error))) throw error;
      // A repeated call would be refused again and block all others.
      log.error("share_refused", {
        user: owner,
        with: user,
        reason: reasonOf(error),
        error: errorText(error),
      });
    }
  }
}

function surely(grants: ReadonlyMap<string, SharedPath>): Map<string, ToldGrant> {
  return new Map([...grants].map(([key, grant]) => [key, { grant, isSure: true }]));
}

/** By path and user. After moves a folder may lie deeper than any path can name; such grants are left out. */
function tellable(shares: readonly SharedPath[]): Map<string, SharedPath> {
  const short = shares.filter(({ path }) => Buffer.byteLength(path) <= PATH_MAX_BYTES);
  return new Map(short.map((share) => [`${share.username}:${share.path}`, share]));
}
