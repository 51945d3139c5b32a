// Tells the MetaServer of this node's shares: all with a registration, then every change, until each is heard (D19, M-01).
import type { Clock } from "#base/clock.ts";
import type { ErrorCode } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS, PATH_MAX_BYTES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { RootRecord, SharedPath, Storage } from "#storage/contract/storage.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { reasonOf } from "./refusal-reason.ts";
import { grantBytes, type ListedRoot } from "./registration-pages.ts";

/** Shares of one root that a registration carries, in bytes; those of a root with more follow one by one. */
export const REGISTERED_GRANTS_MAX_BYTES = 262_144;
/** How long Share waits for the MetaServer to hear of it, so that the other user finds the way at once; it is told later in any case. */
const SHARE_TOLD_WAIT_MS = 1_000;

/** What the teller is made from. */
export interface ShareReplicatorDeps {
  readonly client: Pick<Client<typeof MetaServer>, "rootShare" | "rootUnshare">;
  readonly fsId: string;
  readonly storage: Pick<Storage, "root" | "roots" | "shares">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What a registration says of the roots, and what is known to be heard once it was answered. */
export interface RootList {
  readonly roots: ListedRoot[];
  /** Grants by owner; a root is missing whose grants found no room and have to follow. */
  readonly told: ReadonlyMap<string, ReadonlyMap<string, SharedPath>>;
  readonly toFollow: readonly string[];
}

/** A grant that the MetaServer has heard of, or may have. */
interface ToldGrant {
  readonly grant: SharedPath;
  /** False from before a call that says something of it until that is answered: where the answer is lost nobody knows what it heard. */
  readonly isSure: boolean;
}

/** Why what one grant was told cannot be repeated with another outcome. */
const PASSING: ReadonlySet<ErrorCode | undefined> = new Set([
  undefined,
  "FENCED",
  "OVERLOADED",
  "STARTING",
  "STORE_UNAVAILABLE",
]);

/**
 * What there is to tell is what differs between the grants in storage, which are durable, and those that the MetaServer has acknowledged to
 * this process; of what it has not answered both are told, the grant and its end. So nothing is lost with either side: a restart registers,
 * and a registration tells everything.
 */
export class ShareReplicator {
  readonly #deps: ShareReplicatorDeps;
  /** By owner, the grants that the MetaServer may list: as many as there are, and one that has just ended. */
  #told = new Map<string, Map<string, ToldGrant>>();
  readonly #changed = new Set<string>();
  #epoch: bigint | undefined;
  #telling: Promise<unknown> | undefined;
  #isReached = false;
  /** While a registration is under way, which ends the epoch that calls are made in. */
  #isPaused = false;
  #onRefused: (error: unknown) => void = () => undefined;

  constructor(deps: ShareReplicatorDeps) {
    this.#deps = deps;
    deps.storage.shares.onChange((owners) => {
      for (const owner of owners) this.#changed.add(owner);
      if (this.#isReached) this.tell();
    });
  }

  /** Told of each call that failed for a reason that concerns the node and not the grant. */
  set onRefused(callback: (error: unknown) => void) {
    this.#onRefused = callback;
  }

  /** Stops telling for a registration, ; `registered` or the next contact ends that. Resolves with what it has to say. */
  async pause(): Promise<RootList> {
    this.#isPaused = true;
    await this.#telling;
    return this.#list();
  }

  /** A registration with that list was answered; what has changed since then follows. */
  registered(epoch: bigint, list: RootList): void {
    this.#epoch = epoch;
    this.#told = new Map([...list.told].map(([owner, grants]) => [owner, surely(grants)]));
    for (const owner of list.toFollow) this.#changed.add(owner);
    this.reached();
  }

  /** A heartbeat or registration was answered: what waited is told. */
  reached(): void {
    this.#isPaused = false;
    this.#isReached = true;
    this.tell();
  }

  /** The MetaServer does not answer: what changes waits until it does. */
  lost(): void {
    this.#isReached = false;
  }

  /** Starts telling, unless that is under way. */
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

  /** Resolves when the MetaServer has heard of a root's grants; when it does not answer, or not in time, without that. Never rejects. */
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

  /** Ends the telling; resolves when no call is under way. */
  async stop(): Promise<void> {
    this.#isPaused = true;
    await this.#telling;
  }

  /** All roots with their grants, as of now. */
  #list(): RootList {
    const shares = this.#deps.storage.shares.all();
    const told = new Map<string, Map<string, SharedPath>>();
    const toFollow: string[] = [];
    const roots = this.#deps.storage.roots().map((root) => {
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
      };
    });
    return { roots, told, toFollow };
  }

  /** Never rejects. Ends when there is nothing left to tell, or when the MetaServer does not take it now. */
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
    // What changes from here on puts it there again.
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
    const { client, fsId, log } = this.#deps;
    const { owner, accessVersion } = root;
    const { path, username: user } = grant;
    const version = BigInt(accessVersion);
    try {
      await client[method](
        { owner, path, user, fsId, version, epoch: this.#epoch ?? 0n },
        { timeoutMs: HEARTBEAT_INTERVAL_MS },
      );
    } catch (error) {
      if (PASSING.has(reasonOf(error))) throw error;
      // Repeated it would be refused again, and stand in the way of all others.
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

/** By path and user. Moves may take a folder deeper than any path can name; nobody can ask the way there. */
function tellable(shares: readonly SharedPath[]): Map<string, SharedPath> {
  const short = shares.filter(({ path }) => Buffer.byteLength(path) <= PATH_MAX_BYTES);
  return new Map(short.map((share) => [`${share.username}:${share.path}`, share]));
}
