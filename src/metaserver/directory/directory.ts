// The shared metadata store as everybody sees it: nodes with leases and epochs, where each root lives, who shares what (D19).

import type { SshNode } from "#base/ssh-node.ts";
import type { PeopleStore } from "./people-store.ts";
import type { Subject, SubjectRecord, SubjectsAfter } from "./subject.ts";

/** Commands that may wait for the metadata store; more are answered OVERLOADED. */
export const DIRECTORY_QUEUE_MAX = 10_000;

/** Who speaks for a node, as the transport has proven it (spec 5.6, D20). */
export type Speaker =
  /** Mock mode: nobody proves anything, and the data directory's id stands for the key. */
  | { readonly kind: "mock" }
  /** A certificate that names this very node. */
  | { readonly kind: "named"; readonly keyFingerprint: string }
  /** A certificate that names no node (`fileserver`, `localhost`): good for ids that first registered with its public key. */
  | { readonly kind: "generic"; readonly keyFingerprint: string };

/** One user whom a root's owner lets read and write below a path. */
export interface Grant {
  readonly path: string;
  readonly user: string;
}

/** A root that a registering node holds. */
export interface HeldRoot {
  readonly owner: string;
  readonly rootId: string;
  /** Grows with every change of the root's grants. */
  readonly version: bigint;
  readonly grants: readonly Grant[];
  /** Whom the node knows the owner as; undefined where it knows nobody. */
  readonly subject?: Subject | undefined;
}

/** All that a FileServer says of itself when it registers. */
export interface NodeRegistration {
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
  /** The epoch of this id that the process was told last, 0 for none; undefined from nodes that do not tell, and replace whoever was before. */
  readonly knownEpoch?: number | undefined;
  /** Made once for each data directory. */
  readonly dataId: string;
  /** The process that registered from that directory last, as the directory remembers it; empty or undefined for none. */
  readonly predecessorId?: string | undefined;
  readonly diskTotalBytes: bigint;
  readonly diskFreeBytes: bigint;
  readonly diskReserveBytes: bigint;
  /** All of them, or those of one page. */
  readonly roots: readonly HeldRoot[];
  /** Set where the roots come in pages. */
  readonly page?: RegistrationPage | undefined;
  readonly speaker: Speaker;
}

/** Which part of a registration a page is. */
export interface RegistrationPage {
  /** Grows with each registration of the process that has pages, from 1 on. */
  readonly registration: bigint;
  /** From 0 on; below 512. */
  readonly page: number;
  readonly isLast: boolean;
}

/** A root that a node holds although the store says that it lives elsewhere; the store's word stays. */
export interface RootConflict {
  readonly owner: string;
  readonly heldRootId: string;
  readonly recordedRootId: string;
  readonly recordedFsId: string;
}

/** What a node gets for registering. */
export interface Lease {
  readonly clusterId: string;
  /** Grows with each registration of the id, over the loss of the store too as long as its process remembers; speakers with an older one are fenced. */
  readonly epoch: number;
  readonly conflicts: readonly RootConflict[];
  /** Set when nothing was registered, and the epoch is 0: another process has this epoch, which the sender must name to replace it. */
  readonly heldEpoch?: number | undefined;
  /** Set when nothing was registered yet, and the epoch is 0: the page that is missing next. */
  readonly nextPage?: number | undefined;
}

/** What a node says every 5 s. */
export interface Heartbeat {
  readonly fsId: string;
  readonly epoch: number;
  readonly rootsVersion: bigint;
  /** Roots that the node holds; undefined from nodes that do not tell. */
  readonly rootCount?: bigint | undefined;
  readonly diskFreeBytes: bigint;
  readonly draining: boolean;
  /** Of the process, as it registered; empty or undefined from nodes that do not tell. */
  readonly instanceId?: string | undefined;
  readonly speaker: Speaker;
}

/** What the store answers to a heartbeat. */
export interface HeartbeatOutcome {
  /** False when the store lacks the node, which must then register again. */
  readonly known: boolean;
  /** True when either side shows to be older than before, as after a restored backup: the node should register again. */
  readonly sendFull: boolean;
  /** The version of what an operator has said last of addresses; undefined where none has said anything. */
  readonly subjectsVersion?: bigint | undefined;
}

/** A node that acts for itself in a control call. */
export interface NodeCaller {
  readonly fsId: string;
  readonly epoch: number;
  readonly speaker: Speaker;
  /** When its data folder was restored from a backup, in unix milliseconds; undefined for one that was not. */
  readonly restoredAtMs?: number | undefined;
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
}

/** Where a root lives. */
export interface LocatedRoot {
  readonly owner: string;
  readonly rootId: string;
  readonly fsId: string;
  /** Empty when the node has not registered since the store was rebuilt. */
  readonly address: string;
  readonly live: boolean;
  /** Set in the answer to a claim that takes the place of a lost root, which an operator has given up. */
  readonly replacesLost?: true;
}

/** On which node a user's root lives. */
export type RootPlace = Pick<LocatedRoot, "owner" | "fsId">;

/** A root of somebody else, and the path in it that is shared. */
export interface SharedRoot extends LocatedRoot {
  readonly path: string;
}

/** A path in a root. */
export interface SharePlace {
  readonly owner: string;
  readonly path: string;
}

/** One RootShare (granted) or RootUnshare (not granted) of a node. */
export interface GrantChange extends Grant {
  readonly owner: string;
  readonly version: bigint;
  readonly granted: boolean;
  readonly node: NodeCaller;
}

/** The security events that a MetaServer has seen, as a FileServer's /security-events has them (D22). */
export interface SecurityReport {
  /** Where that MetaServer is: host:port in ASCII. */
  readonly source: string;
  /** JSON; whoever reads it checks it. */
  readonly document: string;
}

/** What is known of nodes whose roots are not all in the store, by id. */
export interface MissingLists {
  /** New roots wait until these have listed theirs. */
  readonly awaited: readonly string[];
  /** An operator has said that these do not come back. */
  readonly givenUp: readonly string[];
}

/** A root that an operator has given up. */
export interface GivenUpRoot {
  /** The node that held it. */
  readonly fsId: string;
}

/** What came of removing a node. */
export interface NodeRemoval {
  /** "holds_roots" when nothing was changed, since that many roots were not given up. */
  readonly outcome: "removed" | "holds_roots" | "unknown";
  /** Roots that it holds or held: their files are on its disk alone. */
  readonly rootCount: number;
  /** Whose they are, in order; the first 100. */
  readonly owners: readonly string[];
  /** True when it was reached over SSH until now. */
  readonly ssh: boolean;
}

/** Whether the store answers at present, and if not, why. Holds no secret. */
export type StoreState =
  | { readonly available: true }
  | { readonly available: false; readonly reason: string };

/**
 * The shared metadata store (D19). Every method is one atomic command, so that several MetaServers may use one store; all of them
 * may reject with STORE_UNAVAILABLE or OVERLOADED. Save where nodes are reached over SSH and who has tried what at a MetaServer, it holds nothing that registrations of the
 * FileServers cannot bring back.
 */
export interface Directory extends PeopleStore {
  /** Resolves when the store can never be used again by this process, with the reason; stays pending otherwise. */
  readonly failed: Promise<Error>;

  /** Tells the store's state now and whenever it changes; the returned function ends that. */
  watch(listener: (state: StoreState) => void): () => void;

  /** The cluster's id; undefined in a new store until a node registers or an id is adopted. */
  clusterId(): Promise<string | undefined>;

  /**
   * Gives a store without an id the one that the cluster had before the store was lost, and holds the placement of new roots for
   * 30 s, so that the FileServers can bring back theirs. Throws CLUSTER_MISMATCH when it has another id, which is never overwritten.
   */
  adoptClusterId(clusterId: string): Promise<void>;

  /**
   * Registers a node, takes over the roots that it holds and the store lacks, and begins a new epoch. One that does not name the epoch of
   * the process that it replaces is told that epoch, and changes nothing: it may have come late, of a process that is gone. Throws
   * CLUSTER_MISMATCH; FENCED when it had an epoch itself, and another process has a newer one;
   * NODE_ID_HELD when a live lease belongs to another certificate key (in mock mode, to another data directory), unless the directory proves
   * to be the holder's, by the process that registered from it last;
   * CLIENT_CERT_REQUIRED when the speaker may not speak for this id; OVERLOADED beyond 1000 nodes.
   *
   * Of a registration in pages nothing is in force before the last; those before are kept for 10 minutes. A page that is there already,
   * or comes before one that is missing, or late, changes nothing, and is answered with the page that is missing next.
   */
  register(registration: NodeRegistration): Promise<Lease>;

  /** Renews a lease. Throws FENCED for an older epoch, NODE_ID_HELD for another key and process than the live lease's, and CLIENT_CERT_REQUIRED when the speaker may not speak for this id. */
  heartbeat(beat: Heartbeat): Promise<HeartbeatOutcome>;

  /**
   * Where the user's root lives; a user without one gets it placed on the live node with the most free bytes above its reserve that
   * is not draining and takes new roots. Throws STARTING while placement is held, naming the nodes that are waited for, and NODE_DRAINING
   * when no node takes new roots, with the nodes in the metadata `maintenance` that are paused.
   */
  locateRoot(owner: string): Promise<LocatedRoot>;

  /**
   * The same for a FileServer that asks (ClaimRoot). Throws FENCED for an older epoch, STARTING for an unknown node, and ROOT_LOST for a root
   * that the node held before it was restored from a backup, until that root is given up: then it answers a new one.
   */
  claimRoot(owner: string, node: NodeCaller): Promise<LocatedRoot>;

  /** Where a root lives, without placing it. */
  findRoot(owner: string): Promise<LocatedRoot | undefined>;

  /** Where all roots live, by owner, from behind an owner on: one page of at most 1000. A shorter page is the last. */
  listRoots(afterOwner?: string): Promise<RootPlace[]>;

  /** What others share with a user, by owner and path, from behind a place on: one page of at most 1000. */
  rootsSharedWith(user: string, after?: SharePlace): Promise<SharedRoot[]>;

  /**
   * The deepest path on the way to a place that the root's owner shares with the user; where none covers it, the place itself if something
   * below it is shared; else undefined, after the same work whether or not there is such a root (D1).
   */
  sharedRoot(user: string, place: SharePlace): Promise<SharedRoot | undefined>;

  /**
   * Records a grant or its end and tells whether that was news: an older version never overwrites a newer one (M-03). Throws FENCED,
   * STARTING while the node has no lease, and WRONG_NODE when the root does not live on the calling node.
   */
  setGrant(change: GrantChange): Promise<boolean>;

  /**
   * Addresses behind which an operator has put another person, in that order, from behind a place on, for a FileServer that asks: one page of
   * at most 1000. Throws as `claimRoot` does.
   */
  reboundSubjects(node: NodeCaller, after: SubjectsAfter): Promise<SubjectRecord[]>;

  /** All nodes by id. */
  nodes(): Promise<NodeRecord[]>;

  /** The nodes that have not listed their roots since the store was lost or restored. */
  missingLists(): Promise<MissingLists>;

  /**
   * Nodes that somebody remembers, at most 1000. Those that the store lacks were in it before it was lost or restored: new roots wait until
   * they have listed theirs, unless they were given up.
   */
  awaitNodes(fsIds: readonly string[]): Promise<void>;

  /**
   * An operator says that a node does not come back: new roots wait for it no longer, also when the store is lost again, until it registers.
   * Tells whether they did wait for it.
   */
  giveUpNode(fsId: string): Promise<boolean>;

  /**
   * Takes a node out of the store, and out of those that are reached over SSH. One that holds roots goes only with as many of them given up as
   * it holds: their users get new, empty ones. Throws BAD_ARGUMENT for one whose lease runs, and for one that has not listed its roots since
   * the store was lost. With the certificate's key that it had the node registers no more, until it is readmitted.
   */
  removeNode(fsId: string, abandonedRoots?: number): Promise<NodeRemoval>;

  /** A node that was taken out has joined anew with this key: it may register again. */
  readmitNode(fsId: string, keyFingerprint: string): Promise<void>;

  /** An operator says that what a restore has lost of a user stays lost; undefined when no node held a root of this user. A root that is there stays. */
  giveUpRoot(owner: string): Promise<GivenUpRoot | undefined>;

  /**
   * New roots are not placed on a node until a moment in unix milliseconds, or are again (undefined). It ends by itself; of a store that was
   * lost nobody brings it back.
   */
  setPlacementPause(fsId: string, untilWallMs: number | undefined): Promise<void>;

  /** The nodes that actions may reach over SSH, by id (D20); unlike the rest, no registration brings them back. */
  sshNodes(): Promise<SshNode[]>;

  /** Records such a node, in the place of what was known of its id. Throws BAD_ARGUMENT, and OVERLOADED beyond 1000. */
  putSshNode(node: SshNode): Promise<void>;

  /** Forgets such a node and tells whether it was known. */
  removeSshNode(id: string): Promise<boolean>;

  /** What MetaServers have told of security events last. Registrations do not bring it back; the next event does. */
  securityReports(): Promise<SecurityReport[]>;

  /** Puts a MetaServer's report in the place of its last one; those of 64 are kept, whoever is silent for longest goes. Throws BAD_ARGUMENT. */
  putSecurityReport(report: SecurityReport): Promise<void>;

  /** Ends the connection; later calls reject. */
  close(): Promise<void>;
}

/** The store for whoever only looks, such as the console. */
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
  | "close"
>;

/** The store for whoever administers nodes and whose the addresses are, beside the MetaServers that use it. */
export type NodeStore = Pick<
  Directory,
  | "nodes"
  | "findSubject"
  | "subjectsOf"
  | "rebindSubjects"
  | "userStates"
  | "missingLists"
  | "giveUpNode"
  | "removeNode"
  | "giveUpRoot"
  | "setPlacementPause"
  | "sshNodes"
  | "putSshNode"
  | "removeSshNode"
  | "close"
>;
