// The metadata store in PostgreSQL: shared by MetaServers, leases by its clock, recovery without an operator.

import { isDeepStrictEqual } from "node:util";
import type { ClientBase, PoolClient, QueryResult } from "pg";
import { GroveError, isGroveError } from "#base/errors.ts";
import { systemFraction } from "#base/random.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { UserState } from "#base/user-state.ts";
import {
  isRefusal,
  otherStore,
  remedyOf,
  toStoreError,
  unavailable,
} from "#metaserver/sql/postgres-errors.ts";
import { PostgresStatements, rolledBack } from "#metaserver/sql/postgres-statements.ts";
import type { Plan } from "#metaserver/sql/sql-plan.ts";
import { parsePostgresUrl } from "#os/postgres-url.ts";
import type { OnUpgraded } from "#os/schema-copy.ts";
import type { Group, GroupBook, GroupChange } from "#security/policy/group.ts";
import * as addressCommands from "./address-change-commands.ts";
import { changesUnderWay, noteChangesHeard } from "./address-changes.ts";
import * as credentialCommands from "./credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord, Revocations } from "./credential-store.ts";
import {
  DIRECTORY_QUEUE_MAX,
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
import type { NodeCaller } from "./node-caller.ts";
import * as nodeCommands from "./node-commands.ts";
import { removeNode } from "./node-removal.ts";
import { setPlacementPause } from "./placement-pauses.ts";
import {
  ConnectFailure,
  POSTGRES_COMMAND_TIMEOUT_MS,
  POSTGRES_CONTROL_CONNECTIONS,
  POSTGRES_PROBE_INTERVAL_MS,
  POSTGRES_REGISTER_TIMEOUT_MS,
  POSTGRES_RETRIES_MAX,
  POSTGRES_USER_CONNECTIONS,
  PostgresConnections,
  type Use,
} from "./postgres-connections.ts";
import type { PostgresDirectoryDeps } from "./postgres-deps.ts";
import { momentOf } from "./postgres-moment.ts";
import { migrate, requireTables } from "./postgres-schema.ts";
import { readmitNode } from "./removed-nodes.ts";
import type { MoveOrder, MoveStep, NodeMove, RootMove, RootSizesOfNode, RootSizesPage } from "./root-move.ts";
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

const DATABASE_NOW = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
/** A younger outage is waited out, since most are a restart; in an older one calls fail at once. */
const WAITED_OUT_MS = 10_000;

/**
 * Opens the store, making missing tables. While the database does not answer, commands reject with
 * STORE_UNAVAILABLE. Throws BAD_ARGUMENT for a wrong URL and tables of a newer Grove, CLUSTER_MISMATCH for
 * another cluster's, STORE_UNAVAILABLE when the database refuses user, password or rights.
 */
export async function openPostgresDirectory(deps: PostgresDirectoryDeps): Promise<Directory> {
  const directory = new PostgresDirectory(deps);
  try {
    await directory.clusterId();
  } catch (error) {
    if (isGroveError(error, "STORE_UNAVAILABLE") && !directory.isRefused) return directory;
    await directory.close();
    throw error;
  }
  return directory;
}

class PostgresDirectory implements Directory {
  readonly failed: Promise<Error>;
  readonly #fail: (error: Error) => void;
  readonly #nowSql: () => string;
  readonly #makesTables: boolean;
  readonly #onUpgraded: OnUpgraded | undefined;
  readonly #read: Use;
  readonly #decide: Use;
  readonly #beat: Use;
  readonly #control: Use;
  readonly #statements = new PostgresStatements();
  readonly #listeners = new Set<(state: StoreState) => void>();
  readonly #probe: NodeJS.Timeout;
  #state: StoreState = { available: false, reason: "the metadata store has not answered yet" };
  #clusterId: string | undefined;
  #closing: Promise<unknown> | undefined;
  #running = 0;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #awaySinceMs: number | undefined;
  /** True when the database has refused Grove, which only an operator can change. */
  isRefused = false;

  constructor(deps: PostgresDirectoryDeps) {
    const settings = parsePostgresUrl(deps.url, process.env);
    const prepare = (client: ClientBase): Promise<void> => this.#prepare(client);
    const connections = (max: number): PostgresConnections =>
      new PostgresConnections({ settings, max, prepare });
    const users = connections(POSTGRES_USER_CONNECTIONS);
    const nodes = connections(POSTGRES_CONTROL_CONNECTIONS);
    const timeoutMs = POSTGRES_COMMAND_TIMEOUT_MS;
    this.#read = { connections: users, holds: "read", timeoutMs };
    this.#decide = { connections: users, holds: "all", timeoutMs };
    this.#beat = { connections: nodes, holds: "row", timeoutMs };
    this.#control = { connections: nodes, holds: "all", timeoutMs: POSTGRES_REGISTER_TIMEOUT_MS };
    this.#clusterId = deps.clusterId;
    this.#makesTables = deps.makesTables ?? true;
    this.#onUpgraded = deps.onUpgraded;
    this.#nowSql = deps.nowSql ?? (() => DATABASE_NOW);
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#fail = failed.resolve;
    this.#probe = setInterval(() => this.#look(), POSTGRES_PROBE_INTERVAL_MS);
    this.#probe.unref();
  }

  watch(listener: (state: StoreState) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#state);
    return () => this.#listeners.delete(listener);
  }

  clusterId(): Promise<string | undefined> {
    return this.#run(this.#read, (now) => nodeCommands.clusterId(now));
  }

  async adoptClusterId(clusterId: string): Promise<void> {
    await this.#run(this.#control, (now) => nodeCommands.adoptClusterId(now, clusterId));
    this.#clusterId = clusterId;
  }

  async register(registration: NodeRegistration): Promise<Lease> {
    const lease = await this.#run(this.#control, (now) => nodeCommands.register(now, registration));
    this.#clusterId = lease.clusterId;
    return lease;
  }

  heartbeat(beat: Heartbeat): Promise<HeartbeatOutcome> {
    return this.#run(this.#beat, (now) => nodeCommands.heartbeat(now, beat));
  }

  async locateRoot(owner: string): Promise<LocatedRoot> {
    const found = await this.findRoot(owner);
    return found ?? this.#run(this.#decide, (now) => commands.locateRoot(now, owner));
  }

  async claimRoot(owner: string, node: NodeCaller): Promise<LocatedRoot> {
    const claimed = await this.#run(this.#read, (now) => commands.claimedRoot(now, owner, node));
    return claimed ?? this.#run(this.#decide, (now) => commands.claimRoot(now, owner, node));
  }

  findRoot(owner: string): Promise<LocatedRoot | undefined> {
    return this.#run(this.#read, (now) => commands.findRoot(now, owner));
  }

  findRootById(rootId: string): Promise<LocatedRoot | undefined> {
    return this.#run(this.#read, (now) => commands.findRootById(now, rootId));
  }

  listRoots(afterOwner?: string): Promise<RootPlace[]> {
    return this.#run(this.#read, (now) => commands.listRoots(now, afterOwner));
  }

  rootsSharedWith(user: string, after?: SharePlace): Promise<SharedRoot[]> {
    return this.#run(this.#read, (now) => commands.rootsSharedWith(now, user, after));
  }

  sharedRoot(user: string, place: SharePlace): Promise<SharedRoot | undefined> {
    return this.#run(this.#read, (now) => commands.sharedRoot(now, user, place));
  }

  setGrant(change: GrantChange): Promise<boolean> {
    return this.#run(this.#control, (now) => commands.setGrant(now, change));
  }

  async admitSubject(username: string, person: Subject): Promise<boolean | KnownElsewhere> {
    const known = await this.#run(this.#read, (now) => subjectCommands.knownSubject(now, username, person));
    return known ?? this.#run(this.#decide, (now) => subjectCommands.admitSubject(now, username, person));
  }

  wantedChanges(): Promise<WantedChange[]> {
    return this.#run(this.#read, (now) => addressCommands.wantedChanges(now));
  }

  changesUnderWay(): Promise<ChangeUnderWay[]> {
    return this.#run(this.#read, changesUnderWay);
  }

  changeAddress(from: string, to: string): Promise<AddressChange> {
    return this.#run(this.#control, (now) => addressCommands.changeAddress(now, from, to));
  }

  refuseAddress(from: string, to: string): Promise<boolean> {
    return this.#run(this.#decide, (now) => addressCommands.refuseAddress(now, from, to));
  }

  noteChangesHeard(fsId: string, version: bigint): Promise<void> {
    return this.#run(this.#control, () => noteChangesHeard(fsId, version));
  }

  findSubject(username: string): Promise<SubjectRecord | undefined> {
    return this.#run(this.#read, (now) => subjectCommands.findSubject(now, username));
  }

  subjectsOf(issuer: string, afterUsername?: string): Promise<SubjectRecord[]> {
    return this.#run(this.#read, (now) => subjectCommands.subjectsOf(now, issuer, afterUsername));
  }

  reboundSubjects(node: NodeCaller, after: SubjectsAfter): Promise<ReboundRecord[]> {
    return this.#run(this.#read, (now) => subjectCommands.reboundSubjects(now, node, after));
  }

  rebindSubjects(rebindings: readonly Rebinding[]): Promise<bigint> {
    return this.#run(this.#decide, (now) => subjectCommands.rebindSubjects(now, rebindings));
  }

  userStates(): Promise<UserState[]> {
    return this.#run(this.#read, userStates);
  }

  userStatesMark(): Promise<string> {
    return this.#run(this.#read, userStatesMark);
  }

  putUserStates(states: readonly UserState[]): Promise<UserState[]> {
    return this.#run(this.#decide, () => putUserStates(states));
  }

  groupBook(): Promise<GroupBook> {
    return this.#run(this.#read, groupBook);
  }

  groupsMark(): Promise<string> {
    return this.#run(this.#read, groupsMark);
  }

  changeGroups(change: GroupChange): Promise<Group | undefined> {
    return this.#run(this.#decide, () => changeGroups(change));
  }

  noticesOff(username: string): Promise<boolean> {
    return this.#run(this.#read, () => noticesOff(username));
  }

  setNoticesOff(username: string, isOff: boolean): Promise<void> {
    return this.#run(this.#decide, () => setNoticesOff(username, isOff));
  }

  addAppPassword(record: AppPasswordRecord): Promise<void> {
    return this.#run(this.#decide, () => credentialCommands.addAppPassword(record));
  }

  appPasswordsOf(owner: string): Promise<AppPasswordRecord[]> {
    return this.#run(this.#read, () => credentialCommands.appPasswordsOf(owner));
  }

  findAppPassword(id: string): Promise<AppPasswordRecord | undefined> {
    return this.#run(this.#read, () => credentialCommands.findAppPassword(id));
  }

  noteAppPasswordUse(id: string, door: string, wallMs: number): Promise<void> {
    return this.#run(this.#decide, () => credentialCommands.noteAppPasswordUse(id, door, wallMs));
  }

  revokeAppPassword(owner: string, which: string, wallMs: number): Promise<AppPasswordRecord | undefined> {
    return this.#run(this.#decide, () => credentialCommands.revokeAppPassword(owner, which, wallMs));
  }

  addDoorSession(record: DoorSessionRecord): Promise<void> {
    return this.#run(this.#decide, () => doorSessions.addDoorSession(record));
  }

  findDoorSession(id: string): Promise<DoorSessionRecord | undefined> {
    return this.#run(this.#read, () => doorSessions.findDoorSession(id));
  }

  noteDoorSessionUse(id: string, door: string, wallMs: number): Promise<void> {
    return this.#run(this.#decide, () => doorSessions.noteDoorSessionUse(id, door, wallMs));
  }

  doorSessionsOf(owner: string): Promise<DoorSessionRecord[]> {
    return this.#run(this.#read, () => doorSessions.doorSessionsOf(owner));
  }

  endDoorSessions(
    owner: string,
    ids: readonly string[] | undefined,
    wallMs: number,
  ): Promise<DoorSessionRecord[]> {
    return this.#run(this.#decide, () => doorSessions.endDoorSessions(owner, ids, wallMs));
  }

  revokeUsedAtDoor(door: string, sinceMs: number, wallMs: number): Promise<AppPasswordRecord[]> {
    return this.#run(this.#decide, () => doorSessions.revokeUsedAtDoor(door, sinceMs, wallMs));
  }

  revocations(): Promise<Revocations> {
    return this.#run(this.#read, () => credentialCommands.revocations());
  }

  nodes(): Promise<NodeRecord[]> {
    return this.#run(this.#read, (now) => nodeCommands.nodes(now));
  }

  missingLists(): Promise<MissingLists> {
    return this.#run(this.#read, missingLists);
  }

  awaitNodes(fsIds: readonly string[]): Promise<void> {
    return this.#run(this.#decide, () => awaitNodes(fsIds));
  }

  giveUpNode(fsId: string): Promise<boolean> {
    return this.#run(this.#decide, (now) => nodeCommands.giveUpNode(now, fsId));
  }

  removeNode(fsId: string, abandonedRoots?: number): Promise<NodeRemoval> {
    return this.#run(this.#decide, (now) => removeNode(now, fsId, abandonedRoots));
  }

  readmitNode(fsId: string, keyFingerprint: string): Promise<void> {
    return this.#run(this.#decide, () => readmitNode(fsId, keyFingerprint));
  }

  giveUpRoot(owner: string): Promise<GivenUpRoot | undefined> {
    return this.#run(this.#decide, (now) => giveUpRoot(now, owner));
  }

  setPlacementPause(fsId: string, untilWallMs: number | undefined): Promise<void> {
    return this.#run(this.#decide, (now) => setPlacementPause(now, fsId, untilWallMs));
  }

  beginMove(order: MoveOrder): Promise<RootMove> {
    return this.#run(this.#control, (now) => moveCommands.beginMove(now, order));
  }

  decideMove(owner: string, decision: "confirm" | "undo"): Promise<RootMove | undefined> {
    return this.#run(this.#control, (now) => moveCommands.decideMove(now, owner, decision));
  }

  rootMoves(): Promise<RootMove[]> {
    return this.#run(this.#read, rootMoves);
  }

  movesOf(node: NodeCaller): Promise<NodeMove[]> {
    return this.#run(this.#read, (now) => moveCommands.movesOf(now, node));
  }

  advanceMove(node: NodeCaller, moveId: string, step: MoveStep): Promise<RootMove> {
    return this.#run(this.#control, (now) => moveCommands.advanceMove(now, node, moveId, step));
  }

  setDrained(fsId: string, isDrained: boolean): Promise<void> {
    return this.#run(this.#decide, (now) => setDrained(now, fsId, isDrained));
  }

  drainedNodes(): Promise<string[]> {
    return this.#run(this.#read, drainedNodes);
  }

  wantRootSizes(): Promise<number> {
    return this.#run(this.#decide, wantRootSizes);
  }

  sizesWanted(): Promise<number> {
    return this.#run(this.#read, sizesWanted);
  }

  noteRootSizes(node: NodeCaller, told: RootSizesPage): Promise<void> {
    return this.#run(this.#control, (now) => noteRootSizes(now, node, told));
  }

  rootSizes(): Promise<RootSizesOfNode[]> {
    return this.#run(this.#read, rootSizes);
  }

  sshNodes(): Promise<SshNode[]> {
    return this.#run(this.#read, sshNodes);
  }

  putSshNode(node: SshNode): Promise<void> {
    return this.#run(this.#decide, () => putSshNode(node));
  }

  removeSshNode(id: string): Promise<boolean> {
    return this.#run(this.#decide, () => removeSshNode(id));
  }

  securityReports(): Promise<SecurityReport[]> {
    return this.#run(this.#read, securityReports);
  }

  putSecurityReport(report: SecurityReport): Promise<void> {
    return this.#run(this.#decide, () => putSecurityReport(report));
  }

  async close(): Promise<void> {
    clearInterval(this.#probe);
    this.#closing ??= Promise.all([this.#read.connections.close(), this.#beat.connections.close()]);
    await this.#closing;
  }

  /** Runs a command until the database decides it or its time is up; any command may be repeated. */
  async #run<Result>(use: Use, command: (now: nodeCommands.Moment) => Plan<Result>): Promise<Result> {
    if (this.#closing !== undefined) throw unavailable("the metadata store is closed");
    if (this.#running >= DIRECTORY_QUEUE_MAX) {
      throw new GroveError("OVERLOADED", "the metadata store has too much to do; try again");
    }
    this.#running++;
    try {
      const result = await this.#repeat(use, command);
      this.#answered();
      return result;
    } catch (error) {
      throw this.#judged(error);
    } finally {
      this.#running--;
    }
  }

  async #repeat<Result>(use: Use, command: (now: nodeCommands.Moment) => Plan<Result>): Promise<Result> {
    const endMs = performance.now() + use.timeoutMs;
    for (let retries = 0; ; retries++) {
      try {
        return await this.#attempt(use, command, endMs);
      } catch (error) {
        const waitMs = this.#waitBefore(error, retries);
        if (waitMs === undefined || performance.now() + waitMs >= endMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  /** How long to wait before the next attempt; undefined when there is none. */
  #waitBefore(error: unknown, retries: number): number | undefined {
    if (retries >= POSTGRES_RETRIES_MAX || this.#closing !== undefined) return undefined;
    if (error instanceof ConnectFailure) {
      this.#awaySinceMs ??= performance.now();
      const isYoung = performance.now() - this.#awaySinceMs < WAITED_OUT_MS;
      return isYoung && this.#answeredMs > 0 && !isRefusal(error.cause) ? error.restMs + 1 : undefined;
    }
    if (isGroveError(error)) return undefined;
    // Between half and the whole, so that conflicting commands do not meet again.
    return remedyOf(error) === "none" ? undefined : 2 ** Math.min(retries, 7) * (0.5 + systemFraction() / 2);
  }

  async #attempt<Result>(
    use: Use,
    command: (now: nodeCommands.Moment) => Plan<Result>,
    endMs: number,
  ): Promise<Result> {
    const { client, release } = await use.connections.acquire(Math.max(endMs - performance.now(), 1));
    let isLate = false;
    // To end a connection in a statement fails the statement, even when the server has fallen asleep.
    const timer = setTimeout(
      () => {
        isLate = true;
        release(true);
      },
      Math.max(endMs - performance.now(), 1),
    );
    try {
      const result = await this.#transact(client, use.holds, command);
      release(false);
      return result;
    } catch (error) {
      if (isLate) throw unavailable("the metadata store's database did not answer in time");
      const isSound = isGroveError(error) || remedyOf(error) !== "reconnect";
      release(!(isSound && (use.holds === "read" || (await rolledBack(client)))));
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #transact<Result>(
    client: PoolClient,
    holds: Use["holds"],
    command: (now: nodeCommands.Moment) => Plan<Result>,
  ): Promise<Result> {
    const now = `SELECT ${this.#nowSql()} AS now_ms, (SELECT value FROM settings WHERE key = 'cluster_id') AS cluster_id`;
    const begin = holds === "read" ? "" : "BEGIN ISOLATION LEVEL READ COMMITTED; ";
    const lock = holds === "all" ? "SELECT value FROM settings WHERE key = 'mutex' FOR UPDATE; " : "";
    // Each statement after the lock sees the results of earlier holders.
    const answers = await client.query(begin + lock + now);
    const last = (Array.isArray(answers) ? answers.at(-1) : answers) as QueryResult;
    const { now_ms, cluster_id } = last.rows[0] as { now_ms: bigint; cluster_id: string | null };
    // Another database stands in this one's place.
    if (this.#clusterId !== undefined && cluster_id !== this.#clusterId) throw otherStore();
    const result = await this.#follow(client, command(momentOf(Number(now_ms))));
    if (holds !== "read") await client.query("COMMIT");
    return result;
  }

  async #follow<Result>(client: ClientBase, plan: Plan<Result>): Promise<Result> {
    let step = plan.next();
    while (step.done !== true) step = plan.next(await this.#statements.ask(client, step.value));
    return step.value;
  }

  /** Checks a new connection's tables: they are this cluster's; an empty store becomes its own again. */
  async #prepare(client: ClientBase): Promise<void> {
    try {
      const upgrade = await (this.#makesTables ? migrate(client) : requireTables(client));
      if (upgrade !== undefined) this.#onUpgraded?.(upgrade);
    } catch (error) {
      // A newer Grove has been here: this one must not touch a schema that it does not know.
      if (isGroveError(error, "BAD_ARGUMENT")) this.#fail(error);
      throw error;
    }
    const { rows } = await client.query("SELECT value FROM settings WHERE key = 'cluster_id'");
    const found = (rows[0] as { value: string } | undefined)?.value;
    if (found === undefined && this.#clusterId !== undefined) await this.#adopt(client, this.#clusterId);
    else if (found !== undefined && this.#clusterId !== undefined && found !== this.#clusterId) {
      throw new GroveError("CLUSTER_MISMATCH", "this metadata store belongs to another cluster", {
        metadata: { cluster_id: found },
      });
    } else this.#clusterId ??= found;
  }

  async #adopt(client: ClientBase, clusterId: string): Promise<void> {
    await client.query("BEGIN; SELECT value FROM settings WHERE key = 'mutex' FOR UPDATE");
    try {
      const { rows } = await client.query(`SELECT ${this.#nowSql()} AS now_ms`);
      const nowMs = Number((rows[0] as { now_ms: bigint }).now_ms);
      await this.#follow(client, nodeCommands.adoptClusterId(momentOf(nowMs), clusterId));
      await client.query("COMMIT");
    } catch (error) {
      await rolledBack(client);
      throw error;
    }
  }

  /** Queries the database when no call has done so lately, so that outages and recoveries are noticed. */
  #look(): void {
    const isFresh = performance.now() - this.#answeredMs < POSTGRES_PROBE_INTERVAL_MS;
    if (!isFresh || !this.#state.available) this.clusterId().catch(() => undefined);
  }

  #answered(): void {
    this.#answeredMs = performance.now();
    this.#awaySinceMs = undefined;
    this.isRefused = false;
    this.#tell({ available: true });
  }

  /** The failure for the caller; reports the database's state to the listeners. */
  #judged(error: unknown): GroveError {
    if (isGroveError(error, "OVERLOADED")) return error;
    const cause = error instanceof ConnectFailure ? error.cause : error;
    if (isGroveError(cause) && !(error instanceof ConnectFailure) && cause.code !== "STORE_UNAVAILABLE") {
      // The rules of the store have refused, so the database works.
      this.#answered();
      return cause;
    }
    const failure = toStoreError(cause);
    if (this.#closing !== undefined) return unavailable("the metadata store is closed");
    this.isRefused = isRefusal(cause);
    this.#tell({ available: false, reason: failure.message });
    // At the start these end the process; later a caller could do nothing about them.
    const isCallers = this.#answeredMs === Number.NEGATIVE_INFINITY || failure.code === "STORE_UNAVAILABLE";
    return isCallers ? failure : unavailable(failure.message);
  }

  #tell(state: StoreState): void {
    const isSame = isDeepStrictEqual(this.#state, state);
    this.#state = state;
    if (!isSame) for (const listener of this.#listeners) listener(state);
  }
}
