// The metadata store on SQLite: runs each command synchronously in one transaction, inside the worker.
import { closeSync, openSync } from "node:fs";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { UserState } from "#base/user-state.ts";
import { holdAlone } from "#os/file-lock.ts";
import type {
  GivenUpRoot,
  GrantChange,
  Heartbeat,
  HeartbeatOutcome,
  Lease,
  LocatedRoot,
  MissingLists,
  NodeCaller,
  NodeRecord,
  NodeRegistration,
  NodeRemoval,
  RootPlace,
  SecurityReport,
  SharedRoot,
  SharePlace,
} from "./directory.ts";
import { giveUpRoot } from "./lost-roots.ts";
import { awaitNodes, missingLists } from "./missing-lists.ts";
import * as nodeCommands from "./node-commands.ts";
import { removeNode } from "./node-removal.ts";
import type { NodeRow } from "./node-row.ts";
import { setPlacementPause } from "./placement-pauses.ts";
import { readmitNode } from "./removed-nodes.ts";
import { putSecurityReport, securityReports } from "./security-commands.ts";
import { all, type Plan } from "./sql-plan.ts";
import { SqlSession } from "./sql-session.ts";
import { migrate } from "./sqlite-schema.ts";
import { putSshNode, removeSshNode, sshNodes } from "./ssh-node-commands.ts";
import * as commands from "./store-commands.ts";
import type { Rebinding, Subject, SubjectRecord, SubjectsAfter } from "./subject.ts";
import * as subjectCommands from "./subject-commands.ts";
import { putUserStates, userStates, userStatesMark } from "./user-state-commands.ts";

/** The caller's clocks at the moment of a command, so that tests drive the worker's time too. */
export interface Now {
  readonly wallMs: number;
  readonly steadyMs: number;
}

/** The store's file, opened by one process at a time for writing. */
export class SqliteStore {
  /** Every commit is flushed before it is answered. */
  readonly #durable: SqlSession;
  /** For heartbeats alone: a power cut loses only the last ones, and flushes would wear out SD cards. */
  readonly #relaxed: SqlSession;
  /** End of each lease on the steady clock, because the wall clock may jump. */
  readonly #leaseEndsSteadyMs = new Map<string, number>();
  readonly #unlock: () => void;
  #placementFromSteadyMs: number;

  constructor(path: string, now: Now) {
    // Leases are counted in this process alone.
    this.#unlock = holdAlone(`${path}.lock`, "another process has opened this metadata store");
    // Made before SQLite does, since the files hold e-mail addresses and the process's umask may be lenient.
    closeSync(openSync(path, "a", 0o600));
    this.#durable = new SqlSession(path, "FULL");
    try {
      migrate(this.#durable.database);
      this.#relaxed = new SqlSession(path, "NORMAL");
    } catch (error) {
      this.#durable.close();
      this.#unlock();
      throw error;
    }
    for (const node of this.#durable.follow(all<NodeRow>("SELECT fs_id, last_seen_ms FROM nodes"))) {
      // A wall clock that went back in between must not stretch a lease.
      const restMs = Math.min(NODE_LEASE_MS, NODE_LEASE_MS - (now.wallMs - Number(node.last_seen_ms)));
      this.#leaseEndsSteadyMs.set(node.fs_id, now.steadyMs + restMs);
    }
    const heldSinceMs = Number(this.#durable.follow(nodeCommands.setting("placement_held_since_ms")) ?? 0);
    this.#placementFromSteadyMs =
      now.steadyMs + Math.min(NODE_LEASE_MS, heldSinceMs + NODE_LEASE_MS - now.wallMs);
  }

  clusterId(now: Now): string | undefined {
    return this.#read(nodeCommands.clusterId(this.#moment(now)));
  }

  adoptClusterId(now: Now, clusterId: string): void {
    this.#write(nodeCommands.adoptClusterId(this.#moment(now), clusterId));
  }

  register(now: Now, registration: NodeRegistration): Lease {
    return this.#write(nodeCommands.register(this.#moment(now), registration));
  }

  heartbeat(now: Now, beat: Heartbeat): HeartbeatOutcome {
    return this.#relaxed.follow(nodeCommands.heartbeat(this.#moment(now), beat));
  }

  locateRoot(now: Now, owner: string): LocatedRoot {
    return this.findRoot(now, owner) ?? this.#write(commands.locateRoot(this.#moment(now), owner));
  }

  claimRoot(now: Now, owner: string, caller: NodeCaller): LocatedRoot {
    const moment = this.#moment(now);
    return (
      this.#read(commands.claimedRoot(moment, owner, caller)) ??
      this.#write(commands.claimRoot(moment, owner, caller))
    );
  }

  findRoot(now: Now, owner: string): LocatedRoot | undefined {
    return this.#read(commands.findRoot(this.#moment(now), owner));
  }

  listRoots(now: Now, afterOwner?: string): RootPlace[] {
    return this.#read(commands.listRoots(this.#moment(now), afterOwner));
  }

  rootsSharedWith(now: Now, user: string, after?: SharePlace): SharedRoot[] {
    return this.#read(commands.rootsSharedWith(this.#moment(now), user, after));
  }

  sharedRoot(now: Now, user: string, place: SharePlace): SharedRoot | undefined {
    return this.#read(commands.sharedRoot(this.#moment(now), user, place));
  }

  setGrant(now: Now, change: GrantChange): boolean {
    return this.#write(commands.setGrant(this.#moment(now), change));
  }

  admitSubject(now: Now, username: string, person: Subject): boolean {
    const moment = this.#moment(now);
    return (
      this.#read(subjectCommands.knownSubject(moment, username, person)) ??
      this.#write(subjectCommands.admitSubject(moment, username, person))
    );
  }

  findSubject(now: Now, username: string): SubjectRecord | undefined {
    return this.#read(subjectCommands.findSubject(this.#moment(now), username));
  }

  subjectsOf(now: Now, issuer: string, afterUsername?: string): SubjectRecord[] {
    return this.#read(subjectCommands.subjectsOf(this.#moment(now), issuer, afterUsername));
  }

  reboundSubjects(now: Now, node: NodeCaller, after: SubjectsAfter): SubjectRecord[] {
    return this.#read(subjectCommands.reboundSubjects(this.#moment(now), node, after));
  }

  rebindSubjects(now: Now, rebindings: readonly Rebinding[]): bigint {
    return this.#write(subjectCommands.rebindSubjects(this.#moment(now), rebindings));
  }

  userStates(_now: Now): UserState[] {
    return this.#read(userStates());
  }

  userStatesMark(_now: Now): string {
    return this.#read(userStatesMark());
  }

  putUserStates(_now: Now, states: readonly UserState[]): UserState[] {
    return this.#write(putUserStates(states));
  }

  nodes(now: Now): NodeRecord[] {
    return this.#read(nodeCommands.nodes(this.#moment(now)));
  }

  missingLists(_now: Now): MissingLists {
    return this.#read(missingLists());
  }

  awaitNodes(_now: Now, fsIds: readonly string[]): void {
    this.#write(awaitNodes(fsIds));
  }

  giveUpNode(now: Now, fsId: string): boolean {
    return this.#write(nodeCommands.giveUpNode(this.#moment(now), fsId));
  }

  removeNode(now: Now, fsId: string, abandonedRoots?: number): NodeRemoval {
    return this.#write(removeNode(this.#moment(now), fsId, abandonedRoots));
  }

  readmitNode(_now: Now, fsId: string, keyFingerprint: string): void {
    this.#write(readmitNode(fsId, keyFingerprint));
  }

  giveUpRoot(now: Now, owner: string): GivenUpRoot | undefined {
    return this.#write(giveUpRoot(this.#moment(now), owner));
  }

  setPlacementPause(now: Now, fsId: string, untilWallMs: number | undefined): void {
    this.#write(setPlacementPause(this.#moment(now), fsId, untilWallMs));
  }

  sshNodes(_now: Now): SshNode[] {
    return this.#read(sshNodes());
  }

  putSshNode(_now: Now, node: SshNode): void {
    this.#write(putSshNode(node));
  }

  removeSshNode(_now: Now, id: string): boolean {
    return this.#write(removeSshNode(id));
  }

  securityReports(_now: Now): SecurityReport[] {
    return this.#read(securityReports());
  }

  putSecurityReport(_now: Now, report: SecurityReport): void {
    // Attempts from outside must not flush the disk each time.
    this.#relaxed.write(() => this.#relaxed.follow(putSecurityReport(report)));
  }

  close(): void {
    this.#relaxed.close();
    this.#durable.close();
    this.#unlock();
  }

  #read<Result>(plan: Plan<Result>): Result {
    return this.#durable.follow(plan);
  }

  #write<Result>(plan: Plan<Result>): Result {
    return this.#durable.write(() => this.#durable.follow(plan));
  }

  #moment(now: Now): nodeCommands.Moment {
    const leases = this.#leaseEndsSteadyMs;
    return {
      wallMs: now.wallMs,
      isLive: (node) => (leases.get(node.fs_id) ?? Number.NEGATIVE_INFINITY) > now.steadyMs,
      renew: (fsId) => leases.set(fsId, now.steadyMs + NODE_LEASE_MS),
      placementWaitMs: () => this.#placementFromSteadyMs - now.steadyMs,
      holdPlacement: () => {
        this.#placementFromSteadyMs = now.steadyMs + NODE_LEASE_MS;
      },
    };
  }
}
