// Ensures that a user who signs in has a root, here or on another node (D19).

import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { DepartedRoot, RootMoveStorage } from "#storage/contract/root-move.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { RootUsage } from "./root-usage.ts";

/** Users whose home node is remembered for WRONG_NODE answers (decision D19). */
const HOME_ADDRESSES_KEPT = 20_000;

/** Where a user's root lives, as the MetaServer has assigned it. */
export interface RootClaim {
  readonly rootId: string;
  /** True when it was assigned to this node. */
  readonly isHere: boolean;
  /** The node that holds it. */
  readonly address: string;
  /** True when it replaces a root lost here that an operator has given up. */
  readonly replacesLost?: boolean;
  /** A number that no other root of the cluster has; undefined from an older MetaServer. */
  readonly number?: number;
}

/** The user who signs in and the person behind the address (D21). */
export type RootUser = Pick<VerifiedIdentity, "username" | "issuer" | "subject">;

/**
 * Asks the MetaServer where a user's root lives; it is not to be made here unless it is missing. Throws
 * STORE_UNAVAILABLE or OVERLOADED when the answer is unknown, TOKEN_REJECTED for another person.
 */
export type ClaimRoot = (user: RootUser, options?: { readonly isMissing: boolean }) => Promise<RootClaim>;

/** Dependencies of the provisioner. */
export interface RootProvisionerDeps {
  readonly storage: Pick<Storage, "root" | "createRoot"> & {
    readonly moves: Pick<RootMoveStorage, "departedRoots">;
  };
  readonly usage: RootUsage;
  /** Undefined on a node that stands alone: it makes every root itself. */
  readonly claimRoot: ClaimRoot | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Called for every root that was made. */
  readonly onRootMade?: (owner: string) => void;
  /** Called for every root made in place of a lost one. */
  readonly onLostReplaced?: (owner: string) => void;
  /** Called for every claim of a root that has left this node, which the MetaServer still has here. */
  readonly onDepartedAsked?: (root: DepartedRoot) => void;
}

/** Roots of this node, and addresses of nodes that hold the others. */
export class RootProvisioner {
  readonly #deps: RootProvisionerDeps;
  /** Concurrent sign-ins of one new user ask once; an entry lives as long as its question. */
  readonly #asking = new Map<string, Promise<string>>();
  readonly #homes = new LRUCache<string, string>(atMost(HOME_ADDRESSES_KEPT));

  constructor(deps: RootProvisionerDeps) {
    this.#deps = deps;
  }

  /**
   * The id of the user's root on this node, made at the first sign-in; empty for a visitor whose root is
   * elsewhere (D19).
   */
  async ensure(user: RootUser): Promise<string> {
    const { username } = user;
    const present = await againWhenRowsCome(() => this.#deps.storage.root(username));
    if (present !== undefined) return present.rootId;
    let asking = this.#asking.get(username);
    if (asking === undefined) {
      asking = this.#find(user).finally(() => this.#asking.delete(username));
      this.#asking.set(username, asking);
    }
    return asking;
  }

  /**
   * Makes the root of a group that was given to this node. One that was known to be elsewhere is asked for
   * again only after news.
   */
  async ensureGroupRoot(owner: string, isNews: boolean): Promise<void> {
    if (this.#deps.storage.root(owner) !== undefined || (!isNews && this.#homes.has(owner))) return;
    await this.ensure({ username: owner, issuer: "", subject: "" });
  }

  async #find(user: RootUser): Promise<string> {
    const { claimRoot, storage } = this.#deps;
    const { username } = user;
    if (claimRoot === undefined) return this.#make(username, ulid(this.#deps.clock, this.#deps.random));
    // A root that has left this node is not missing: a store that has it here is an older copy.
    const departed = storage.moves.departedRoots(username);
    let claim = await claimRoot(user, { isMissing: departed.length === 0 });
    const left = departed.find(({ rootId }) => rootId === claim.rootId);
    if (claim.isHere && left !== undefined) return this.#sendAfter(left);
    if (claim.isHere && departed.length > 0) claim = await claimRoot(user);
    if (claim.isHere) {
      const rootId = await this.#make(username, claim.rootId, claim.number);
      if (claim.replacesLost === true) this.#deps.onLostReplaced?.(username);
      return rootId;
    }
    this.#homes.set(username, claim.address);
    return "";
  }

  /** Sends a user after a root that has left: no empty one is made in its place. */
  #sendAfter(left: DepartedRoot): string {
    if (left.address !== "") this.#homes.set(left.owner, left.address);
    this.#deps.onDepartedAsked?.(left);
    return "";
  }

  /** The address of the node that holds a visitor's root, once asked for. */
  homeAddressOf(username: string): string | undefined {
    return this.#homes.get(username);
  }

  async #make(owner: string, rootId: string, number?: number): Promise<string> {
    const root = await this.#deps.storage.createRoot({ owner, rootId, number });
    this.#homes.delete(owner);
    this.#deps.usage.record(owner, this.#deps.storage.root(owner)?.usage ?? root.usage);
    this.#deps.onRootMade?.(owner);
    return root.rootId;
  }
}
