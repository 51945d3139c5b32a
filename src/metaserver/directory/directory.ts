// The interface of the metadata store: nodes with leases and epochs, places of roots, grants (D19).

import type { SshNode } from "#base/ssh-node.ts";
import type { CredentialStore } from "./credential-store.ts";
import type { MissingLists } from "./missing-lists.ts";
import type { NodeCaller, NodeGate, Speaker } from "./node-caller.ts";
import type { AddressCommand, PeopleStore } from "./people-store.ts";
import type { ArrivalTold, CopiesFound, DeparturesTold, RootMoveStore } from "./root-move.ts";
import type { NamesHeard, ReboundRecord, Subject, SubjectsAfter } from "./subject.ts";

/** Commands that may wait for the metadata store; more are answered OVERLOADED. */
export const DIRECTORY_QUEUE_MAX = 10_000;

/** One user who may read and write below a path of a root. */
export interface Grant {
  readonly path: string;
  readonly user: string;
}

/** A root that a registering node holds. */
export interface HeldRoot extends ArrivalTold {
  readonly owner: string;
  readonly rootId: string;
  /** Grows with every change of the root's grants. */
  readonly version: bigint;
  readonly grants: readonly Grant[];
  /** The owner's person as the node knows it; undefined when unknown. */
  readonly subject?: Subject | undefined;
  /** The upper part of the root's inode numbers; undefined from nodes that omit it. */
  readonly number?: number | undefined;
  /** The epoch under which a process holds it on a shared engine; undefined for files on a node's disk. */
  readonly leaseEpoch?: bigint | undefined;
}

/** All that a FileServer states when it registers. */
export interface NodeRegistration extends NamesHeard, DeparturesTold {
  readonly fsId: string;
  readonly name: string;
  /** gRPC address as clients reach it, host:port. */
  readonly address: string;
  readonly softwareVersion: string;
  /** Empty for a node that never was in a cluster. */
  readonly clusterId: string;
  /** New for each start of the process. */
  readonly instanceId: string;
  /** The epoch that the process had before; 0 or undefined at its start. */
  readonly lastEpoch?: number | undefined;
  /** The last epoch of this id that it knows, 0 for none; undefined from nodes that replace any holder. */
  readonly knownEpoch?: number | undefined;
  /** Made once for each data directory. */
  readonly dataId: string;
  /** The process that registered last, by the directory's own file; empty or undefined for none. */
  readonly predecessorId?: string | undefined;
  readonly diskTotalBytes: bigint;
  readonly diskFreeBytes: bigint;
  readonly diskReserveBytes: bigint;
  /** All of them, or those of one page. */
  readonly roots: readonly HeldRoot[];
  /** Set when the roots come in pages. */
  readonly page?: RegistrationPage | undefined;
  /** Set where the roots lie in the shared engine: none moves between this node and another. */
  readonly onEngine?: true;
  readonly speaker: Speaker;
}

/** The place of a page in its registration. */
export interface RegistrationPage {
  /** Grows with each paged registration of the process, from 1 on. */
  readonly registration: bigint;
  /** From 0 on; below 512. */
  readonly page: number;
  readonly isLast: boolean;
}

/** A root that a node holds while the store places it elsewhere; the store's place stays. */
export interface RootConflict {
  readonly owner: string;
  readonly heldRootId: string;
  readonly recordedRootId: string;
  readonly recordedFsId: string;
}

/** The answer to a registration. */
export interface Lease extends CopiesFound {
  readonly clusterId: string;
  /** Grows with each registration, even over a store's loss while the process lives; older are fenced. */
  readonly epoch: number;
  readonly conflicts: readonly RootConflict[];
  /** Set when nothing was registered (epoch 0): the epoch of the holder, which the sender must name. */
  readonly heldEpoch?: number | undefined;
  /** Set when nothing was registered yet (epoch 0): the next missing page. */
  readonly nextPage?: number | undefined;
}

/** The report of a node every 5 s. */
export interface Heartbeat {
  readonly fsId: string;
  readonly epoch: number;
  readonly rootsVersion: bigint;
  /** Roots that the node holds; undefined from nodes that omit it. */
  readonly rootCount?: bigint | undefined;
  readonly diskFreeBytes: bigint;
  readonly draining: boolean;
  /** The process's instance id as registered; empty or undefined from nodes that omit it. */
  readonly instanceId?: string | undefined;
  readonly speaker: Speaker;
}

/** The store's answer to a heartbeat. */
export interface HeartbeatOutcome {
  /** False when the store lacks the node, which must then register again. */
  readonly known: boolean;
  /** True when either side is older than before, as after a restore: the node should register again. */
  readonly sendFull: boolean;
  /** The version of the last rebinding of an address; undefined when there is none. */
  readonly subjectsVersion?: bigint | undefined;
}

/** A node as the store knows it. */
export interface NodeRecord {
  readonly fsId: string;
  readonly name: string;
  readonly address: string;
  readonly softwareVersion: string;
  readonly epoch: number;
  readonly diskTotalBytes: bigint;
  readonly diskFreeBytes: bigint;
  readonly diskReserveBytes: bigint;
  readonly draining: boolean;
  /** True while its lease runs: a heartbeat came within the last 30 s. */
  readonly live: boolean;
  /** Wall time of the last heartbeat or registration. */
  readonly lastSeenWallMs: number;
  /** Roots that live on it. */
  readonly rootCount: number;
  /** Set where they lie in the shared engine, and not on its own disks. */
  readonly onEngine?: true;
}

/** Where a root lives. */
export interface LocatedRoot {
  readonly owner: string;
  readonly rootId: string;
  readonly fsId: string;
  /** Empty when the node has not registered since the store was rebuilt. */
  readonly address: string;
  readonly live: boolean;
  /** Set for a root that has a place alone: no node has made it, so that it has no files. */
  readonly isUnmade?: true;
  /** Set when a claim replaces a lost root that an operator has given up. */
  readonly replacesLost?: true;
  /** Set in the answer to a claim that needs it: a number that no other root of the cluster has. */
  readonly number?: number;
}

/** The node on which a user's root lives. */
export type RootPlace = Pick<LocatedRoot, "owner" | "fsId">;

/** A root of another user, and the shared path in it. */
export interface SharedRoot extends LocatedRoot {
  readonly path: string;
}

/** A path in a root. */
export interface SharePlace {
  readonly owner: string;
  readonly path: string;
}

/** One RootShare (granted) or RootUnshare (not granted) of a node. */
export interface GrantChange extends Grant, NamesHeard {
  readonly owner: string;
  readonly version: bigint;
  readonly granted: boolean;
  readonly node: NodeCaller;
}

/** The security events of a MetaServer, in the form of a FileServer's /security-events (D22). */
export interface SecurityReport {
  /** Address of that MetaServer: host:port in ASCII. */
  readonly source: string;
  /** JSON; its readers check it. */
  readonly document: string;
}

/** A root that an operator has given up. */
export interface GivenUpRoot {
  /** The node that held it. */
  readonly fsId: string;
}

/** The outcome of a node's removal. */
export interface NodeRemoval {
  /** "holds_roots" when nothing was changed, since that many roots were not given up. */
  readonly outcome: "removed" | "holds_roots" | "unknown";
  /** Roots that it holds or held: their files are on its disk alone. */
  readonly rootCount: number;
  /** Their owners, in order; the first 100. */
  readonly owners: readonly string[];
  /** True when it was reached over SSH until now. */
  readonly ssh: boolean;
}

/** Whether the store answers at present, and if not, why. Holds no secret. */
export type StoreState =
  | { readonly available: true }
  | { readonly available: false; readonly reason: string };

/**
 * The shared metadata store (D19). Every method is one atomic command, so that several MetaServers may use
 * one store; all may reject with STORE_UNAVAILABLE or OVERLOADED. Registrations of the FileServers restore
 * its content, except the nodes reached over SSH, the MetaServers' security events and app passwords.
 */
export interface Directory extends PeopleStore, RootMoveStore, CredentialStore, NodeGate {
  /** Resolves with the reason when this process can never use the store again; stays pending otherwise. */
  readonly failed: Promise<Error>;

  /** Reports the store's state now and at each change; the returned function ends that. */
  watch(listener: (state: StoreState) => void): () => void;

  /** The cluster's id; undefined in a new store until a node registers or an id is adopted. */
  clusterId(): Promise<string | undefined>;

  /**
   * Gives a store without an id the cluster's former one, and holds the placement of new roots for 30 s, so
   * that FileServers can register theirs. Throws CLUSTER_MISMATCH when it has another id, which is never
   * overwritten.
   */
  adoptClusterId(clusterId: string): Promise<void>;

  /**
   * Registers a node, takes over roots that the store lacks, and begins a new epoch. A registration that does
   * not name the epoch it replaces changes nothing and is answered with that epoch: it may be a late one.
   * Throws CLUSTER_MISMATCH; FENCED when it had an epoch itself and another process has a newer one;
   * OVERLOADED beyond 1000 nodes. Throws CLIENT_CERT_REQUIRED when the speaker may not speak for this id.
   * Throws NODE_ID_HELD when a live lease belongs to another certificate key (in mock mode, to another data
   * directory), unless the directory's last registered process is the holder.
   * Of a paged registration nothing is in force before the last page; earlier ones are kept for 10 minutes. A
   * repeated, early or late page changes nothing and is answered with the next missing one.
   */
  register(registration: NodeRegistration): Promise<Lease>;

  /**
   * Renews a lease. Throws FENCED for an older epoch, NODE_ID_HELD for another key and process than the live
   * lease's, and CLIENT_CERT_REQUIRED when the speaker may not speak for this id.
   */
  heartbeat(beat: Heartbeat): Promise<HeartbeatOutcome>;

  /**
   * Where the user's root lives. A new root goes to the live node with the most free bytes above its reserve
   * that is not draining and takes new roots. Throws STARTING while placement is held, with the awaited
   * nodes. Throws NODE_DRAINING when no node takes new roots, with the paused nodes in the metadata
   * `maintenance`.
   */
  locateRoot(owner: string): Promise<LocatedRoot>;

  /**
   * The same for a FileServer that asks (ClaimRoot). Throws FENCED for an older epoch, STARTING for an
   * unknown node. Throws ROOT_LOST for a root that the node lost in a restore, until it is given up: then it
   * answers a new one.
   */
  claimRoot(owner: string, node: NodeCaller): Promise<LocatedRoot>;

  /** Where a root lives, without placing it. */
  findRoot(owner: string): Promise<LocatedRoot | undefined>;

  /** The same by the root's id, which the links of its files name. */
  findRootById(rootId: string): Promise<LocatedRoot | undefined>;

  /** Places of all roots, by owner, after a given owner: pages of at most 1000; a shorter one is the last. */
  listRoots(afterOwner?: string): Promise<RootPlace[]>;

  /** Roots shared with a user, by owner and path, after a given place: one page of at most 1000. */
  rootsSharedWith(user: string, after?: SharePlace): Promise<SharedRoot[]>;

  /**
   * The deepest path on the way to a place that its owner shares with the user. Where none covers it: the
   * place itself if something below it is shared, else undefined. The work is the same whether or not the
   * root exists (D1).
   */
  sharedRoot(user: string, place: SharePlace): Promise<SharedRoot | undefined>;

  /**
   * Records a grant or its end, and returns whether that was new: an older version never overwrites a newer
   * one (M-03). Throws FENCED, STARTING while the node has no lease, and WRONG_NODE when the root does not
   * live on the calling node.
   */
  setGrant(change: GrantChange): Promise<boolean>;

  /**
   * Rebound addresses for a FileServer in their order, one page of at most 1000. Throws as `claimRoot` does.
   */
  reboundSubjects(node: NodeCaller, after: SubjectsAfter): Promise<ReboundRecord[]>;

  /** All nodes by id. */
  nodes(): Promise<NodeRecord[]>;

  /** The nodes that have not listed their roots since the store was lost or restored. */
  missingLists(): Promise<MissingLists>;

  /**
   * Adds nodes that a host remembers, at most 1000. The store has lost those that it lacks: new roots wait
   * until they have listed theirs, unless they were given up.
   */
  awaitNodes(fsIds: readonly string[]): Promise<void>;

  /**
   * Gives a node up: new roots wait for it no longer, even after another loss of the store, until it
   * registers. Returns whether they did wait for it.
   */
  giveUpNode(fsId: string): Promise<boolean>;

  /**
   * Removes a node from the store and from those reached over SSH. One that holds roots goes only when that
   * many are given up: their users get new, empty ones. Throws BAD_ARGUMENT during its lease, and before it
   * has listed its roots after a loss of the store. Its certificate's key cannot register again until it is
   * readmitted.
   */
  removeNode(fsId: string, abandonedRoots?: number): Promise<NodeRemoval>;

  /** Readmits a removed node that has joined anew with this key: it may register again. */
  readmitNode(fsId: string, keyFingerprint: string): Promise<void>;

  /** Gives up a user's root that a restore lost; undefined when no node held one. A present root stays. */
  giveUpRoot(owner: string): Promise<GivenUpRoot | undefined>;

  /**
   * Places no new roots on a node until a moment in unix milliseconds, or places them again (undefined). The
   * pause ends by itself, and a loss of the store loses it.
   */
  setPlacementPause(fsId: string, untilWallMs: number | undefined): Promise<void>;

  /** The nodes that actions may reach over SSH, by id (D20); no registration restores them. */
  sshNodes(): Promise<SshNode[]>;

  /** Records such a node, replacing its id's former one. Throws BAD_ARGUMENT, and OVERLOADED beyond 1000. */
  putSshNode(node: SshNode): Promise<void>;

  /** Removes such a node and returns whether it was known. */
  removeSshNode(id: string): Promise<boolean>;

  /** The last security reports of MetaServers. Registrations do not restore them; the next event does. */
  securityReports(): Promise<SecurityReport[]>;

  /** Replaces a MetaServer's last report; of over 64 the one silent longest goes. Throws BAD_ARGUMENT. */
  putSecurityReport(report: SecurityReport): Promise<void>;

  /** Ends the connection; later calls reject. */
  close(): Promise<void>;
}

/** The store for read-only users such as the console. */
export type DirectoryReader = Pick<
  Directory,
  | "failed"
  | "watch"
  | "clusterId"
  | "findRoot"
  | "listRoots"
  | "nodes"
  | "missingLists"
  | "sshNodes"
  | "securityReports"
  | "userStates"
  | "groupBook"
  | "noticesOff"
  | "appPasswordsOf"
  | "rootMoves"
  | "drainedNodes"
  | "close"
>;

/** The store for commands that administer nodes and addresses, beside the MetaServers that use it. */
export type NodeStore = Pick<
  Directory,
  | "nodes"
  | "findSubject"
  | "subjectsOf"
  | "rebindSubjects"
  | AddressCommand
  | "userStates"
  | "missingLists"
  | "giveUpNode"
  | "removeNode"
  | "giveUpRoot"
  | "revokeUsedAtDoor"
  | "setPlacementPause"
  | "listRoots"
  | "beginMove"
  | "decideMove"
  | "rootMoves"
  | "setDrained"
  | "drainedNodes"
  | "wantRootSizes"
  | "rootSizes"
  | "sshNodes"
  | "putSshNode"
  | "removeSshNode"
  | "close"
>;
