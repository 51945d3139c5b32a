// The metadata store on SQLite: runs each command synchronously in one transaction, inside the worker.

import { closeSync, openSync } from "node:fs";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { UserState } from "#base/user-state.ts";
import { setting } from "#metaserver/sql/settings.ts";
import { all, type Plan } from "#metaserver/sql/sql-plan.ts";
import { SqlSession } from "#metaserver/sql/sql-session.ts";
import { holdAlone } from "#os/file-lock.ts";
import type { SchemaUpgrade } from "#os/schema-copy.ts";
import type { Group, GroupBook, GroupChange } from "#security/policy/group.ts";
import * as addressCommands from "./address-change-commands.ts";
import { changesUnderWay, noteChangesHeard } from "./address-changes.ts";
import * as credentialCommands from "./credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord, Revocations } from "./credential-store.ts";
import type {
  GivenUpRoot,
  GrantChange,
  Heartbeat,
  HeartbeatOutcome,
  Lease,
  LocatedRoot,
  NodeRecord,
  NodeRegistration,
  NodeRemoval,
  RootPlace,
  SecurityReport,
  SharedRoot,
  SharePlace,
} from "./directory.ts";
import * as doorSessions from "./door-session-commands.ts";
import { drainedNodes, setDrained } from "./drained-nodes.ts";
import { changeGroups, groupBook, groupsMark } from "./group-commands.ts";
import { giveUpRoot } from "./lost-roots.ts";
import { awaitNodes, type MissingLists, missingLists } from "./missing-lists.ts";
import type { NodeCaller, NodeOfCall, Speaker } from "./node-caller.ts";
import * as nodeCommands from "./node-commands.ts";
import { removeNode } from "./node-removal.ts";
import type { NodeRow } from "./node-row.ts";
import { setPlacementPause } from "./placement-pauses.ts";
import { readmitNode, requireNotRemoved } from "./removed-nodes.ts";
import type {
  MoveDecision,
  MoveOrder,
  MoveStep,
  NodeMove,
  RootMove,
  RootSizesOfNode,
  RootSizesPage,
} from "./root-move.ts";
import * as moveCommands from "./root-move-commands.ts";
import { rootMoves } from "./root-move-rows.ts";
import { noteRootSizes, rootSizes, sizesWanted, wantRootSizes } from "./root-sizes.ts";
import { putSecurityReport, securityReports } from "./security-commands.ts";
import { migrate } from "./sqlite-schema.ts";
import { putSshNode, removeSshNode, sshNodes } from "./ssh-node-commands.ts";
import * as commands from "./store-commands.ts";
import type {
  AddressChange,
  ChangeUnderWay,
  KnownElsewhere,
  Rebinding,
  ReboundRecord,
  Subject,
  SubjectRecord,
  SubjectsAfter,
  WantedChange,
} from "./subject.ts";
import * as subjectCommands from "./subject-commands.ts";
import {
  noticesOff,
  putUserStates,
  setNoticesOff,
  userStates,
  userStatesMark,
} from "./user-state-commands.ts";

/** The caller's clocks at the moment of a command, so that tests drive the worker's time too. */
export interface Now {
  readonly wallMs: number;
  readonly steadyMs: number;
}

/** The store's file, opened by one process at a time for writing. */
export class SqliteStore {
  /** What this opening has upgraded. */
  readonly upgrade: SchemaUpgrade | undefined;
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
      this.upgrade = migrate(this.#durable.database, path);
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
    const heldSinceMs = Number(this.#durable.follow(setting("placement_held_since_ms")) ?? 0);
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

  findRootById(now: Now, rootId: string): LocatedRoot | undefined {
    return this.#read(commands.findRootById(this.#moment(now), rootId));
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

  admitSubject(now: Now, username: string, person: Subject): boolean | KnownElsewhere {
    const moment = this.#moment(now);
    return (
      this.#read(subjectCommands.knownSubject(moment, username, person)) ??
      this.#write(subjectCommands.admitSubject(moment, username, person))
    );
  }

  wantedChanges(now: Now): WantedChange[] {
    return this.#read(addressCommands.wantedChanges(this.#moment(now)));
  }

  changesUnderWay(_now: Now): ChangeUnderWay[] {
    return this.#read(changesUnderWay());
  }

  changeAddress(now: Now, from: string, to: string): AddressChange {
    return this.#write(addressCommands.changeAddress(this.#moment(now), from, to));
  }

  refuseAddress(now: Now, from: string, to: string): boolean {
    return this.#write(addressCommands.refuseAddress(this.#moment(now), from, to));
  }

  noteChangesHeard(_now: Now, fsId: string, version: bigint): void {
    this.#write(noteChangesHeard(fsId, version));
  }

  findSubject(now: Now, username: string): SubjectRecord | undefined {
    return this.#read(subjectCommands.findSubject(this.#moment(now), username));
  }

  subjectsOf(now: Now, issuer: string, afterUsername?: string): SubjectRecord[] {
    return this.#read(subjectCommands.subjectsOf(this.#moment(now), issuer, afterUsername));
  }

  reboundSubjects(now: Now, node: NodeCaller, after: SubjectsAfter): ReboundRecord[] {
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

  groupBook(_now: Now): GroupBook {
    return this.#read(groupBook());
  }

  groupsMark(_now: Now): string {
    return this.#read(groupsMark());
  }

  changeGroups(_now: Now, change: GroupChange): Group | undefined {
    return this.#write(changeGroups(change));
  }

  noticesOff(_now: Now, username: string): boolean {
    return this.#read(noticesOff(username));
  }

  setNoticesOff(_now: Now, username: string, isOff: boolean): void {
    return this.#write(setNoticesOff(username, isOff));
  }

  addAppPassword(_now: Now, record: AppPasswordRecord): void {
    return this.#write(credentialCommands.addAppPassword(record));
  }

  appPasswordsOf(_now: Now, owner: string): AppPasswordRecord[] {
    return this.#read(credentialCommands.appPasswordsOf(owner));
  }

  findAppPassword(_now: Now, id: string): AppPasswordRecord | undefined {
    return this.#read(credentialCommands.findAppPassword(id));
  }

  noteAppPasswordUse(_now: Now, id: string, door: string, wallMs: number): void {
    return this.#write(credentialCommands.noteAppPasswordUse(id, door, wallMs));
  }

  revokeAppPassword(_now: Now, owner: string, which: string, wallMs: number): AppPasswordRecord | undefined {
    return this.#write(credentialCommands.revokeAppPassword(owner, which, wallMs));
  }

  addDoorSession(_now: Now, record: DoorSessionRecord): void {
    return this.#write(doorSessions.addDoorSession(record));
  }

  findDoorSession(_now: Now, id: string): DoorSessionRecord | undefined {
    return this.#read(doorSessions.findDoorSession(id));
  }

  noteDoorSessionUse(_now: Now, id: string, door: string, wallMs: number): void {
    return this.#write(doorSessions.noteDoorSessionUse(id, door, wallMs));
  }

  doorSessionsOf(_now: Now, owner: string): DoorSessionRecord[] {
    return this.#read(doorSessions.doorSessionsOf(owner));
  }

  endDoorSessions(
    _now: Now,
    owner: string,
    ids: readonly string[] | undefined,
    wallMs: number,
  ): DoorSessionRecord[] {
    return this.#write(doorSessions.endDoorSessions(owner, ids, wallMs));
  }

  revokeUsedAtDoor(_now: Now, door: string, sinceMs: number, wallMs: number): AppPasswordRecord[] {
    return this.#write(doorSessions.revokeUsedAtDoor(door, sinceMs, wallMs));
  }

  revocations(_now: Now): Revocations {
    return this.#read(credentialCommands.revocations());
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

  requireNode(_now: Now, node: NodeOfCall): void {
    this.#read(nodeCommands.requireCaller(node));
  }

  requireNotRemoved(_now: Now, fsId: string, speaker: Speaker): void {
    this.#read(requireNotRemoved(fsId, speaker));
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

  beginMove(now: Now, order: MoveOrder): RootMove {
    return this.#write(moveCommands.beginMove(this.#moment(now), order));
  }

  decideMove(now: Now, owner: string, decision: MoveDecision): RootMove | undefined {
    return this.#write(moveCommands.decideMove(this.#moment(now), owner, decision));
  }

  rootMoves(_now: Now): RootMove[] {
    return this.#read(rootMoves());
  }

  movesOf(now: Now, node: NodeCaller): NodeMove[] {
    return this.#read(moveCommands.movesOf(this.#moment(now), node));
  }

  advanceMove(now: Now, node: NodeCaller, moveId: string, step: MoveStep): RootMove {
    return this.#write(moveCommands.advanceMove(this.#moment(now), node, moveId, step));
  }

  setDrained(now: Now, fsId: string, isDrained: boolean): void {
    this.#write(setDrained(this.#moment(now), fsId, isDrained));
  }

  drainedNodes(_now: Now): string[] {
    return this.#read(drainedNodes());
  }

  wantRootSizes(now: Now): number {
    return this.#write(wantRootSizes(this.#moment(now)));
  }

  sizesWanted(now: Now): number {
    return this.#read(sizesWanted(this.#moment(now)));
  }

  noteRootSizes(now: Now, node: NodeCaller, told: RootSizesPage): void {
    this.#write(noteRootSizes(this.#moment(now), node, told));
  }

  rootSizes(_now: Now): RootSizesOfNode[] {
    return this.#read(rootSizes());
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
