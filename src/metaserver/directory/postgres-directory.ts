// The metadata store in PostgreSQL: shared by MetaServers, leases by its clock, recovery without an operator.
import { isGroveError } from "#base/errors.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { UserState } from "#base/user-state.ts";
import type { Group, GroupBook, GroupChange } from "#security/policy/group.ts";
import * as addressCommands from "./address-change-commands.ts";
import { changesUnderWay, noteChangesHeard } from "./address-changes.ts";
import * as credentialCommands from "./credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord, Revocations } from "./credential-store.ts";
import {
  type Directory,
  type GivenUpRoot,
  type GrantChange,
  type Heartbeat,
  type HeartbeatOutcome,
  type Lease,
  type LocatedRoot,
  type NodeRecord,
  type NodeRegistration,
  type NodeRemoval,
  type RootPlace,
  type SecurityReport,
  type SharedRoot,
  type SharePlace,
  type StoreState,
} from "./directory.ts";
import * as doorSessions from "./door-session-commands.ts";
import { drainedNodes, setDrained } from "./drained-nodes.ts";
import { changeGroups, groupBook, groupsMark } from "./group-commands.ts";
import { giveUpRoot } from "./lost-roots.ts";
import { awaitNodes, type MissingLists, missingLists } from "./missing-lists.ts";
import type { NodeCaller, NodeOfCall, Speaker } from "./node-caller.ts";
import * as nodeCommands from "./node-commands.ts";
import { removeNode } from "./node-removal.ts";
import { setPlacementPause } from "./placement-pauses.ts";
import { type PostgresDirectoryDeps, PostgresStore } from "./postgres-store.ts";
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

/**
 * Opens the store, making missing tables. While the database does not answer, or is too slow, commands reject with
 * STORE_UNAVAILABLE or OVERLOADED. Throws BAD_ARGUMENT for a wrong URL and tables of a newer Grove, CLUSTER_MISMATCH for
 * another cluster's, STORE_UNAVAILABLE when the database refuses user, password or rights.
 */
export async function openPostgresDirectory(deps: PostgresDirectoryDeps): Promise<Directory> {
  const directory = new PostgresDirectory(deps);
  try {
    await directory.clusterId();
  } catch (error) {
    if (isGroveError(error, "STORE_UNAVAILABLE", "OVERLOADED") && !directory.isRefused) return directory;
    await directory.close();
    throw error;
  }
  return directory;
}

class PostgresDirectory implements Directory {
  readonly failed: Promise<Error>;
  readonly #store: PostgresStore;

  constructor(deps: PostgresDirectoryDeps) {
    this.#store = new PostgresStore(deps);
    this.failed = this.#store.failed;
  }

  /** True when the database has refused Grove, which only an operator can change. */
  get isRefused(): boolean {
    return this.#store.isRefused;
  }

  watch(listener: (state: StoreState) => void): () => void {
    return this.#store.watch(listener);
  }

  clusterId(): Promise<string | undefined> {
    return this.#store.read((now) => nodeCommands.clusterId(now));
  }

  async adoptClusterId(clusterId: string): Promise<void> {
    await this.#store.control((now) => nodeCommands.adoptClusterId(now, clusterId));
    this.#store.belongsTo(clusterId);
  }

  async register(registration: NodeRegistration): Promise<Lease> {
    const lease = await this.#store.control((now) => nodeCommands.register(now, registration));
    this.#store.belongsTo(lease.clusterId);
    return lease;
  }

  heartbeat(beat: Heartbeat): Promise<HeartbeatOutcome> {
    return this.#store.beat((now) => nodeCommands.heartbeat(now, beat));
  }

  async locateRoot(owner: string): Promise<LocatedRoot> {
    const found = await this.findRoot(owner);
    return found ?? this.#store.decide((now) => commands.locateRoot(now, owner));
  }

  async claimRoot(owner: string, node: NodeCaller): Promise<LocatedRoot> {
    const claimed = await this.#store.read((now) => commands.claimedRoot(now, owner, node));
    return claimed ?? this.#store.decide((now) => commands.claimRoot(now, owner, node));
  }

  findRoot(owner: string): Promise<LocatedRoot | undefined> {
    return this.#store.read((now) => commands.findRoot(now, owner));
  }

  findRootById(rootId: string): Promise<LocatedRoot | undefined> {
    return this.#store.read((now) => commands.findRootById(now, rootId));
  }

  listRoots(afterOwner?: string): Promise<RootPlace[]> {
    return this.#store.read((now) => commands.listRoots(now, afterOwner));
  }

  rootsSharedWith(user: string, after?: SharePlace): Promise<SharedRoot[]> {
    return this.#store.read((now) => commands.rootsSharedWith(now, user, after));
  }

  sharedRoot(user: string, place: SharePlace): Promise<SharedRoot | undefined> {
    return this.#store.read((now) => commands.sharedRoot(now, user, place));
  }

  setGrant(change: GrantChange): Promise<boolean> {
    return this.#store.control((now) => commands.setGrant(now, change));
  }

  async admitSubject(username: string, person: Subject): Promise<boolean | KnownElsewhere> {
    const known = await this.#store.read((now) => subjectCommands.knownSubject(now, username, person));
    return known ?? this.#store.decide((now) => subjectCommands.admitSubject(now, username, person));
  }

  wantedChanges(): Promise<WantedChange[]> {
    return this.#store.read((now) => addressCommands.wantedChanges(now));
  }

  changesUnderWay(): Promise<ChangeUnderWay[]> {
    return this.#store.read(changesUnderWay);
  }

  changeAddress(from: string, to: string): Promise<AddressChange> {
    return this.#store.control((now) => addressCommands.changeAddress(now, from, to));
  }

  refuseAddress(from: string, to: string): Promise<boolean> {
    return this.#store.decide((now) => addressCommands.refuseAddress(now, from, to));
  }

  noteChangesHeard(fsId: string, version: bigint): Promise<void> {
    return this.#store.control(() => noteChangesHeard(fsId, version));
  }

  findSubject(username: string): Promise<SubjectRecord | undefined> {
    return this.#store.read((now) => subjectCommands.findSubject(now, username));
  }

  subjectsOf(issuer: string, afterUsername?: string): Promise<SubjectRecord[]> {
    return this.#store.read((now) => subjectCommands.subjectsOf(now, issuer, afterUsername));
  }

  reboundSubjects(node: NodeCaller, after: SubjectsAfter): Promise<ReboundRecord[]> {
    return this.#store.read((now) => subjectCommands.reboundSubjects(now, node, after));
  }

  rebindSubjects(rebindings: readonly Rebinding[]): Promise<bigint> {
    return this.#store.control((now) => subjectCommands.rebindSubjects(now, rebindings));
  }

  userStates(): Promise<UserState[]> {
    return this.#store.read(userStates);
  }

  userStatesMark(): Promise<string> {
    return this.#store.read(userStatesMark);
  }

  putUserStates(states: readonly UserState[]): Promise<UserState[]> {
    return this.#store.decide(() => putUserStates(states));
  }

  groupBook(): Promise<GroupBook> {
    return this.#store.read(groupBook);
  }

  groupsMark(): Promise<string> {
    return this.#store.read(groupsMark);
  }

  changeGroups(change: GroupChange): Promise<Group | undefined> {
    return this.#store.decide(() => changeGroups(change));
  }

  noticesOff(username: string): Promise<boolean> {
    return this.#store.read(() => noticesOff(username));
  }

  setNoticesOff(username: string, isOff: boolean): Promise<void> {
    return this.#store.decide(() => setNoticesOff(username, isOff));
  }

  addAppPassword(record: AppPasswordRecord): Promise<void> {
    return this.#store.decide(() => credentialCommands.addAppPassword(record));
  }

  appPasswordsOf(owner: string): Promise<AppPasswordRecord[]> {
    return this.#store.read(() => credentialCommands.appPasswordsOf(owner));
  }

  findAppPassword(id: string): Promise<AppPasswordRecord | undefined> {
    return this.#store.read(() => credentialCommands.findAppPassword(id));
  }

  noteAppPasswordUse(id: string, door: string, wallMs: number): Promise<void> {
    return this.#store.decide(() => credentialCommands.noteAppPasswordUse(id, door, wallMs));
  }

  revokeAppPassword(owner: string, which: string, wallMs: number): Promise<AppPasswordRecord | undefined> {
    return this.#store.decide(() => credentialCommands.revokeAppPassword(owner, which, wallMs));
  }

  addDoorSession(record: DoorSessionRecord): Promise<void> {
    return this.#store.decide(() => doorSessions.addDoorSession(record));
  }

  findDoorSession(id: string): Promise<DoorSessionRecord | undefined> {
    return this.#store.read(() => doorSessions.findDoorSession(id));
  }

  noteDoorSessionUse(id: string, door: string, wallMs: number): Promise<void> {
    return this.#store.decide(() => doorSessions.noteDoorSessionUse(id, door, wallMs));
  }

  doorSessionsOf(owner: string): Promise<DoorSessionRecord[]> {
    return this.#store.read(() => doorSessions.doorSessionsOf(owner));
  }

  endDoorSessions(
    owner: string,
    ids: readonly string[] | undefined,
    wallMs: number,
  ): Promise<DoorSessionRecord[]> {
    return this.#store.decide(() => doorSessions.endDoorSessions(owner, ids, wallMs));
  }

  revokeUsedAtDoor(door: string, sinceMs: number, wallMs: number): Promise<AppPasswordRecord[]> {
    return this.#store.control(() => doorSessions.revokeUsedAtDoor(door, sinceMs, wallMs));
  }

  revocations(): Promise<Revocations> {
    return this.#store.read(() => credentialCommands.revocations());
  }

  nodes(): Promise<NodeRecord[]> {
    return this.#store.read((now) => nodeCommands.nodes(now));
  }

  missingLists(): Promise<MissingLists> {
    return this.#store.read(missingLists);
  }

  awaitNodes(fsIds: readonly string[]): Promise<void> {
    return this.#store.decide(() => awaitNodes(fsIds));
  }

  giveUpNode(fsId: string): Promise<boolean> {
    return this.#store.decide((now) => nodeCommands.giveUpNode(now, fsId));
  }

  removeNode(fsId: string, abandonedRoots?: number): Promise<NodeRemoval> {
    return this.#store.decide((now) => removeNode(now, fsId, abandonedRoots));
  }

  async requireNode(node: NodeOfCall): Promise<void> {
    await this.#store.read(() => nodeCommands.requireCaller(node));
  }

  requireNotRemoved(fsId: string, speaker: Speaker): Promise<void> {
    return this.#store.read(() => requireNotRemoved(fsId, speaker));
  }

  readmitNode(fsId: string, keyFingerprint: string): Promise<void> {
    return this.#store.decide(() => readmitNode(fsId, keyFingerprint));
  }

  giveUpRoot(owner: string): Promise<GivenUpRoot | undefined> {
    return this.#store.decide((now) => giveUpRoot(now, owner));
  }

  setPlacementPause(fsId: string, untilWallMs: number | undefined): Promise<void> {
    return this.#store.decide((now) => setPlacementPause(now, fsId, untilWallMs));
  }

  beginMove(order: MoveOrder): Promise<RootMove> {
    return this.#store.control((now) => moveCommands.beginMove(now, order));
  }

  decideMove(owner: string, decision: MoveDecision): Promise<RootMove | undefined> {
    return this.#store.control((now) => moveCommands.decideMove(now, owner, decision));
  }

  rootMoves(): Promise<RootMove[]> {
    return this.#store.read(rootMoves);
  }

  movesOf(node: NodeCaller): Promise<NodeMove[]> {
    return this.#store.read((now) => moveCommands.movesOf(now, node));
  }

  advanceMove(node: NodeCaller, moveId: string, step: MoveStep): Promise<RootMove> {
    return this.#store.control((now) => moveCommands.advanceMove(now, node, moveId, step));
  }

  setDrained(fsId: string, isDrained: boolean): Promise<void> {
    return this.#store.decide((now) => setDrained(now, fsId, isDrained));
  }

  drainedNodes(): Promise<string[]> {
    return this.#store.read(drainedNodes);
  }

  wantRootSizes(): Promise<number> {
    return this.#store.decide(wantRootSizes);
  }

  sizesWanted(): Promise<number> {
    return this.#store.read(sizesWanted);
  }

  noteRootSizes(node: NodeCaller, told: RootSizesPage): Promise<void> {
    return this.#store.control((now) => noteRootSizes(now, node, told));
  }

  rootSizes(): Promise<RootSizesOfNode[]> {
    return this.#store.read(rootSizes);
  }

  sshNodes(): Promise<SshNode[]> {
    return this.#store.read(sshNodes);
  }

  putSshNode(node: SshNode): Promise<void> {
    return this.#store.decide(() => putSshNode(node));
  }

  removeSshNode(id: string): Promise<boolean> {
    return this.#store.decide(() => removeSshNode(id));
  }

  securityReports(): Promise<SecurityReport[]> {
    return this.#store.read(securityReports);
  }

  putSecurityReport(report: SecurityReport): Promise<void> {
    return this.#store.decide(() => putSecurityReport(report));
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
