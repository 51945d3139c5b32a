// The metadata store in one SQLite file: passes each command to the worker that owns the file.
import { Worker } from "node:worker_threads";
import { AwakeClock } from "#base/awake-clock.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { UserState } from "#base/user-state.ts";
import type { OnUpgraded, SchemaUpgrade } from "#os/schema-copy.ts";
import type { Group, GroupBook, GroupChange } from "#security/policy/group.ts";
import type { AppPasswordRecord, DoorSessionRecord, Revocations } from "./credential-store.ts";
import {
  DIRECTORY_QUEUE_MAX,
  type Directory,
  type DirectoryReader,
  type GivenUpRoot,
  type GrantChange,
  type Heartbeat,
  type HeartbeatOutcome,
  type Lease,
  type LocatedRoot,
  type NodeRecord,
  type NodeRegistration,
  type NodeRemoval,
  type NodeStore,
  type RootPlace,
  type SecurityReport,
  type SharedRoot,
  type SharePlace,
  type StoreState,
} from "./directory.ts";
import type { MissingLists } from "./missing-lists.ts";
import type { NodeCaller, NodeOfCall, Speaker } from "./node-caller.ts";
import type {
  MoveDecision,
  MoveOrder,
  MoveStep,
  NodeMove,
  RootMove,
  RootSizesOfNode,
  RootSizesPage,
} from "./root-move.ts";
import type { Now, SqliteStore } from "./sqlite-store.ts";
import type { StoreCommand, WorkerReply, WorkerRequest, WorkerStart } from "./sqlite-worker.ts";
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

/** Interval in which a MetaServer with its own store counts the time that it could receive heartbeats. */
export const LEASE_LOOK_INTERVAL_MS = 1_000;

/** Dependencies of the store on SQLite. */
export interface SqliteDirectoryDeps {
  /** Path of the file; its folder exists. */
  readonly path: string;
  readonly clock: Clock;
  /** Called when the opening has brought the tables to a newer schema. */
  readonly onUpgraded?: OnUpgraded | undefined;
}

/**
 * Opens a store that another process writes, read-only (D19). Throws STORE_UNAVAILABLE for a missing one or
 * one of an older Grove, BAD_ARGUMENT for a file of a newer one or of another program.
 */
export async function openSqliteReader(deps: SqliteDirectoryDeps): Promise<DirectoryReader> {
  const directory = new SqliteDirectory(deps, "reader");
  await directory.opened;
  return directory;
}

/**
 * Opens a store to enrol, give up or remove nodes while a MetaServer may use it: none of that depends on the
 * writer's leases. Throws as `openSqliteReader` does.
 */
export async function openSqliteNodes(deps: SqliteDirectoryDeps): Promise<NodeStore> {
  const directory = new SqliteDirectory(deps, "enroller");
  await directory.opened;
  return directory;
}

type Values<Command extends StoreCommand> =
  Parameters<SqliteStore[Command]> extends [Now, ...infer Rest] ? Rest : [];

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

const WORKER = import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.js";

/**
 * Opens or makes the store (D19). One process at a time writes; others may open the file read-only. Throws
 * BAD_ARGUMENT for a file of a newer Grove or of another program, DATA_IN_USE while another process has it,
 * STORE_UNAVAILABLE when it cannot be opened.
 */
export async function openSqliteDirectory(deps: SqliteDirectoryDeps): Promise<Directory> {
  const directory = new SqliteDirectory(deps, "owner");
  const upgrade = (await directory.opened) as SchemaUpgrade | undefined;
  if (upgrade !== undefined) deps.onUpgraded?.(upgrade);
  return directory;
}

class SqliteDirectory implements Directory {
  readonly failed: Promise<Error>;
  readonly opened: Promise<unknown>;
  /** A suspended MetaServer received no heartbeat, so its clock ends no lease. */
  readonly #clock: AwakeClock;
  readonly #stopLooking: () => void;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #fail: (error: Error) => void;
  #lastId = 0;
  #ended: Error | undefined;

  constructor(deps: SqliteDirectoryDeps, role: WorkerStart["role"]) {
    this.#clock = new AwakeClock(deps.clock, LEASE_LOOK_INTERVAL_MS);
    this.#stopLooking = deps.clock.every(LEASE_LOOK_INTERVAL_MS, () => this.#clock.look(() => undefined));
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#fail = failed.resolve;
    this.opened = new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    const workerData: WorkerStart = { path: deps.path, now: this.#now(), role };
    this.#worker = new Worker(new URL(WORKER, import.meta.url), { workerData });
    this.#worker.on("message", (reply: WorkerReply) => this.#settle(reply));
    this.#worker.on("error", (cause) => this.#end(unavailable("the metadata store's worker failed", cause)));
    this.#worker.on("exit", () => this.#end(unavailable("the metadata store is closed")));
  }

  watch(listener: (state: StoreState) => void): () => void {
    let isWatched = true;
    listener({ available: true });
    void this.failed.then((error) => {
      if (isWatched) listener({ available: false, reason: error.message });
    });
    return () => {
      isWatched = false;
    };
  }

  clusterId(): Promise<string | undefined> {
    return this.#call("clusterId");
  }

  adoptClusterId(clusterId: string): Promise<void> {
    return this.#call("adoptClusterId", clusterId);
  }

  register(registration: NodeRegistration): Promise<Lease> {
    return this.#call("register", registration);
  }

  heartbeat(beat: Heartbeat): Promise<HeartbeatOutcome> {
    return this.#call("heartbeat", beat);
  }

  locateRoot(owner: string): Promise<LocatedRoot> {
    return this.#call("locateRoot", owner);
  }

  claimRoot(owner: string, node: NodeCaller): Promise<LocatedRoot> {
    return this.#call("claimRoot", owner, node);
  }

  findRoot(owner: string): Promise<LocatedRoot | undefined> {
    return this.#call("findRoot", owner);
  }

  findRootById(rootId: string): Promise<LocatedRoot | undefined> {
    return this.#call("findRootById", rootId);
  }

  listRoots(afterOwner?: string): Promise<RootPlace[]> {
    return this.#call("listRoots", afterOwner);
  }

  rootsSharedWith(user: string, after?: SharePlace): Promise<SharedRoot[]> {
    return this.#call("rootsSharedWith", user, after);
  }

  sharedRoot(user: string, place: SharePlace): Promise<SharedRoot | undefined> {
    return this.#call("sharedRoot", user, place);
  }

  setGrant(change: GrantChange): Promise<boolean> {
    return this.#call("setGrant", change);
  }

  admitSubject(username: string, person: Subject): Promise<boolean | KnownElsewhere> {
    return this.#call("admitSubject", username, person);
  }

  wantedChanges(): Promise<WantedChange[]> {
    return this.#call("wantedChanges");
  }

  changesUnderWay(): Promise<ChangeUnderWay[]> {
    return this.#call("changesUnderWay");
  }

  changeAddress(from: string, to: string): Promise<AddressChange> {
    return this.#call("changeAddress", from, to);
  }

  refuseAddress(from: string, to: string): Promise<boolean> {
    return this.#call("refuseAddress", from, to);
  }

  noteChangesHeard(fsId: string, version: bigint): Promise<void> {
    return this.#call("noteChangesHeard", fsId, version);
  }

  findSubject(username: string): Promise<SubjectRecord | undefined> {
    return this.#call("findSubject", username);
  }

  subjectsOf(issuer: string, afterUsername?: string): Promise<SubjectRecord[]> {
    return this.#call("subjectsOf", issuer, afterUsername);
  }

  reboundSubjects(node: NodeCaller, after: SubjectsAfter): Promise<ReboundRecord[]> {
    return this.#call("reboundSubjects", node, after);
  }

  rebindSubjects(rebindings: readonly Rebinding[]): Promise<bigint> {
    return this.#call("rebindSubjects", rebindings);
  }

  userStates(): Promise<UserState[]> {
    return this.#call("userStates");
  }

  userStatesMark(): Promise<string> {
    return this.#call("userStatesMark");
  }

  putUserStates(states: readonly UserState[]): Promise<UserState[]> {
    return this.#call("putUserStates", states);
  }

  groupBook(): Promise<GroupBook> {
    return this.#call("groupBook");
  }

  groupsMark(): Promise<string> {
    return this.#call("groupsMark");
  }

  changeGroups(change: GroupChange): Promise<Group | undefined> {
    return this.#call("changeGroups", change);
  }

  noticesOff(username: string): Promise<boolean> {
    return this.#call("noticesOff", username);
  }

  setNoticesOff(username: string, isOff: boolean): Promise<void> {
    return this.#call("setNoticesOff", username, isOff);
  }

  addAppPassword(record: AppPasswordRecord): Promise<void> {
    return this.#call("addAppPassword", record);
  }

  appPasswordsOf(owner: string): Promise<AppPasswordRecord[]> {
    return this.#call("appPasswordsOf", owner);
  }

  findAppPassword(id: string): Promise<AppPasswordRecord | undefined> {
    return this.#call("findAppPassword", id);
  }

  noteAppPasswordUse(id: string, door: string, wallMs: number): Promise<void> {
    return this.#call("noteAppPasswordUse", id, door, wallMs);
  }

  revokeAppPassword(owner: string, which: string, wallMs: number): Promise<AppPasswordRecord | undefined> {
    return this.#call("revokeAppPassword", owner, which, wallMs);
  }

  addDoorSession(record: DoorSessionRecord): Promise<void> {
    return this.#call("addDoorSession", record);
  }

  findDoorSession(id: string): Promise<DoorSessionRecord | undefined> {
    return this.#call("findDoorSession", id);
  }

  noteDoorSessionUse(id: string, door: string, wallMs: number): Promise<void> {
    return this.#call("noteDoorSessionUse", id, door, wallMs);
  }

  doorSessionsOf(owner: string): Promise<DoorSessionRecord[]> {
    return this.#call("doorSessionsOf", owner);
  }

  endDoorSessions(
    owner: string,
    ids: readonly string[] | undefined,
    wallMs: number,
  ): Promise<DoorSessionRecord[]> {
    return this.#call("endDoorSessions", owner, ids, wallMs);
  }

  revokeUsedAtDoor(door: string, sinceMs: number, wallMs: number): Promise<AppPasswordRecord[]> {
    return this.#call("revokeUsedAtDoor", door, sinceMs, wallMs);
  }

  revocations(): Promise<Revocations> {
    return this.#call("revocations");
  }

  nodes(): Promise<NodeRecord[]> {
    return this.#call("nodes");
  }

  missingLists(): Promise<MissingLists> {
    return this.#call("missingLists");
  }

  awaitNodes(fsIds: readonly string[]): Promise<void> {
    return this.#call("awaitNodes", fsIds);
  }

  giveUpNode(fsId: string): Promise<boolean> {
    return this.#call("giveUpNode", fsId);
  }

  removeNode(fsId: string, abandonedRoots?: number): Promise<NodeRemoval> {
    return this.#call("removeNode", fsId, abandonedRoots);
  }

  requireNode(node: NodeOfCall): Promise<void> {
    return this.#call("requireNode", node);
  }

  requireNotRemoved(fsId: string, speaker: Speaker): Promise<void> {
    return this.#call("requireNotRemoved", fsId, speaker);
  }

  readmitNode(fsId: string, keyFingerprint: string): Promise<void> {
    return this.#call("readmitNode", fsId, keyFingerprint);
  }

  giveUpRoot(owner: string): Promise<GivenUpRoot | undefined> {
    return this.#call("giveUpRoot", owner);
  }

  setPlacementPause(fsId: string, untilWallMs: number | undefined): Promise<void> {
    return this.#call("setPlacementPause", fsId, untilWallMs);
  }

  beginMove(order: MoveOrder): Promise<RootMove> {
    return this.#call("beginMove", order);
  }

  decideMove(owner: string, decision: MoveDecision): Promise<RootMove | undefined> {
    return this.#call("decideMove", owner, decision);
  }

  rootMoves(): Promise<RootMove[]> {
    return this.#call("rootMoves");
  }

  movesOf(node: NodeCaller): Promise<NodeMove[]> {
    return this.#call("movesOf", node);
  }

  advanceMove(node: NodeCaller, moveId: string, step: MoveStep): Promise<RootMove> {
    return this.#call("advanceMove", node, moveId, step);
  }

  setDrained(fsId: string, isDrained: boolean): Promise<void> {
    return this.#call("setDrained", fsId, isDrained);
  }

  drainedNodes(): Promise<string[]> {
    return this.#call("drainedNodes");
  }

  wantRootSizes(): Promise<number> {
    return this.#call("wantRootSizes");
  }

  sizesWanted(): Promise<number> {
    return this.#call("sizesWanted");
  }

  noteRootSizes(node: NodeCaller, told: RootSizesPage): Promise<void> {
    return this.#call("noteRootSizes", node, told);
  }

  rootSizes(): Promise<RootSizesOfNode[]> {
    return this.#call("rootSizes");
  }

  sshNodes(): Promise<SshNode[]> {
    return this.#call("sshNodes");
  }

  putSshNode(node: SshNode): Promise<void> {
    return this.#call("putSshNode", node);
  }

  removeSshNode(id: string): Promise<boolean> {
    return this.#call("removeSshNode", id);
  }

  securityReports(): Promise<SecurityReport[]> {
    return this.#call("securityReports");
  }

  putSecurityReport(report: SecurityReport): Promise<void> {
    return this.#call("putSecurityReport", report);
  }

  async close(): Promise<void> {
    if (this.#ended !== undefined) return;
    const exited = new Promise((resolve) => this.#worker.once("exit", resolve));
    const answered = this.#send("close", []);
    this.#ended = unavailable("the metadata store is closed");
    await answered;
    await exited;
  }

  #call<Command extends StoreCommand>(
    command: Command,
    ...values: Values<Command>
  ): Promise<ReturnType<SqliteStore[Command]>> {
    return this.#send(command, values) as Promise<ReturnType<SqliteStore[Command]>>;
  }

  #send(command: WorkerRequest["command"], values: readonly unknown[]): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (this.#waiting.size >= DIRECTORY_QUEUE_MAX && command !== "close") {
      return Promise.reject(new GroveError("OVERLOADED", "the metadata store has too much to do; try again"));
    }
    const id = ++this.#lastId;
    const answered = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage({ id, command, now: this.#now(), values } satisfies WorkerRequest);
    return answered;
  }

  #settle(reply: WorkerReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (!("error" in reply)) {
      waiting?.resolve(reply.value);
      return;
    }
    const { code, message, metadata } = reply.error;
    const error = new GroveError(code, message, { metadata });
    waiting?.reject(error);
    if (reply.isFinal) this.#fail(error);
  }

  #end(error: GroveError): void {
    this.#stopLooking();
    const isExpected = this.#ended !== undefined;
    this.#ended ??= error;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
    if (!isExpected) this.#fail(error);
  }

  #now(): Now {
    return { wallMs: this.#clock.wallMs(), steadyMs: this.#clock.steadyMs() };
  }
}

function unavailable(message: string, cause?: unknown): GroveError {
  return new GroveError("STORE_UNAVAILABLE", message, cause === undefined ? {} : { cause });
}
