// Reads the store's file from another process while the MetaServer has it open; runs in the worker (D19).

import { statSync } from "node:fs";
import { GroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { UserState } from "#base/user-state.ts";
import type { Plan } from "#metaserver/sql/sql-plan.ts";
import { SqlSession } from "#metaserver/sql/sql-session.ts";
import type { GroupBook } from "#security/policy/group.ts";
import * as addressCommands from "./address-change-commands.ts";
import { changesUnderWay } from "./address-changes.ts";
import { appPasswordsOf } from "./credential-commands.ts";
import type { AppPasswordRecord } from "./credential-store.ts";
import type {
  GivenUpRoot,
  LocatedRoot,
  NodeRecord,
  NodeRemoval,
  RootPlace,
  SecurityReport,
} from "./directory.ts";
import { revokeUsedAtDoor } from "./door-session-commands.ts";
import { drainedNodes, setDrained } from "./drained-nodes.ts";
import { groupBook } from "./group-commands.ts";
import { giveUpRoot } from "./lost-roots.ts";
import { type MissingLists, missingLists } from "./missing-lists.ts";
import * as nodeCommands from "./node-commands.ts";
import { removeNode } from "./node-removal.ts";
import { setPlacementPause } from "./placement-pauses.ts";
import type { MoveDecision, MoveOrder, RootMove, RootSizesOfNode } from "./root-move.ts";
import * as moveCommands from "./root-move-commands.ts";
import { rootMoves } from "./root-move-rows.ts";
import { rootSizes, wantRootSizes } from "./root-sizes.ts";
import { securityReports } from "./security-commands.ts";
import { requireCurrentSchema } from "./sqlite-schema.ts";
import type { Now } from "./sqlite-store.ts";
import { putSshNode, removeSshNode, sshNodes } from "./ssh-node-commands.ts";
import * as commands from "./store-commands.ts";
import type { AddressChange, ChangeUnderWay, Rebinding, SubjectRecord, WantedChange } from "./subject.ts";
import * as subjectCommands from "./subject-commands.ts";
import { noticesOff, userStates } from "./user-state-commands.ts";

interface OpenFile {
  readonly session: SqlSession;
  /** Device and inode number of the file, which change when the store was lost and made again. */
  readonly place: string;
}

/** Reads a store that another process writes, or enrols nodes in it; a replaced file is opened again. */
export class SqliteReader {
  readonly #path: string;
  readonly #mode: "read-only" | "FULL";
  #file: OpenFile | undefined;

  /** Throws STORE_UNAVAILABLE without a store, BAD_ARGUMENT for a file of another schema or program. */
  constructor(path: string, role: "reader" | "enroller") {
    this.#path = path;
    this.#mode = role === "reader" ? "read-only" : "FULL";
    this.#open();
  }

  clusterId(now: Now): string | undefined {
    return this.#read(now, nodeCommands.clusterId);
  }

  findRoot(now: Now, owner: string): LocatedRoot | undefined {
    return this.#read(now, (moment) => commands.findRoot(moment, owner));
  }

  listRoots(now: Now, afterOwner?: string): RootPlace[] {
    return this.#read(now, (moment) => commands.listRoots(moment, afterOwner));
  }

  userStates(now: Now): UserState[] {
    return this.#read(now, userStates);
  }

  groupBook(now: Now): GroupBook {
    return this.#read(now, groupBook);
  }

  noticesOff(now: Now, username: string): boolean {
    return this.#read(now, () => noticesOff(username));
  }

  nodes(now: Now): NodeRecord[] {
    return this.#read(now, nodeCommands.nodes);
  }

  missingLists(now: Now): MissingLists {
    return this.#read(now, missingLists);
  }

  giveUpNode(now: Now, fsId: string): boolean {
    return this.#write(nodeCommands.giveUpNode(readersMoment(now), fsId));
  }

  removeNode(now: Now, fsId: string, abandonedRoots?: number): NodeRemoval {
    return this.#write(removeNode(readersMoment(now), fsId, abandonedRoots));
  }

  giveUpRoot(now: Now, owner: string): GivenUpRoot | undefined {
    return this.#write(giveUpRoot(readersMoment(now), owner));
  }

  beginMove(now: Now, order: MoveOrder): RootMove {
    return this.#write(moveCommands.beginMove(readersMoment(now), order));
  }

  decideMove(now: Now, owner: string, decision: MoveDecision): RootMove | undefined {
    return this.#write(moveCommands.decideMove(readersMoment(now), owner, decision));
  }

  rootMoves(now: Now): RootMove[] {
    return this.#read(now, rootMoves);
  }

  setDrained(now: Now, fsId: string, isDrained: boolean): void {
    this.#write(setDrained(readersMoment(now), fsId, isDrained));
  }

  drainedNodes(now: Now): string[] {
    return this.#read(now, drainedNodes);
  }

  wantRootSizes(now: Now): number {
    return this.#write(wantRootSizes(readersMoment(now)));
  }

  rootSizes(now: Now): RootSizesOfNode[] {
    return this.#read(now, rootSizes);
  }

  setPlacementPause(now: Now, fsId: string, untilWallMs: number | undefined): void {
    this.#write(setPlacementPause(readersMoment(now), fsId, untilWallMs));
  }

  findSubject(now: Now, username: string): SubjectRecord | undefined {
    return this.#read(now, (moment) => subjectCommands.findSubject(moment, username));
  }

  subjectsOf(now: Now, issuer: string, afterUsername?: string): SubjectRecord[] {
    return this.#read(now, (moment) => subjectCommands.subjectsOf(moment, issuer, afterUsername));
  }

  rebindSubjects(now: Now, rebindings: readonly Rebinding[]): bigint {
    return this.#write(subjectCommands.rebindSubjects(readersMoment(now), rebindings));
  }

  wantedChanges(now: Now): WantedChange[] {
    return this.#read(now, addressCommands.wantedChanges);
  }

  changesUnderWay(now: Now): ChangeUnderWay[] {
    return this.#read(now, changesUnderWay);
  }

  changeAddress(now: Now, from: string, to: string): AddressChange {
    return this.#write(addressCommands.changeAddress(readersMoment(now), from, to));
  }

  refuseAddress(now: Now, from: string, to: string): boolean {
    return this.#write(addressCommands.refuseAddress(readersMoment(now), from, to));
  }

  sshNodes(now: Now): SshNode[] {
    return this.#read(now, sshNodes);
  }

  securityReports(now: Now): SecurityReport[] {
    return this.#read(now, securityReports);
  }

  putSshNode(_now: Now, node: SshNode): void {
    this.#write(putSshNode(node));
  }

  removeSshNode(_now: Now, id: string): boolean {
    return this.#write(removeSshNode(id));
  }

  appPasswordsOf(now: Now, owner: string): AppPasswordRecord[] {
    return this.#read(now, () => appPasswordsOf(owner));
  }

  revokeUsedAtDoor(_now: Now, door: string, sinceMs: number, wallMs: number): AppPasswordRecord[] {
    return this.#write(revokeUsedAtDoor(door, sinceMs, wallMs));
  }

  close(): void {
    this.#file?.session.close();
    this.#file = undefined;
  }

  #read<Result>(now: Now, plan: (moment: nodeCommands.Moment) => Plan<Result>): Result {
    return this.#use((session) => session.follow(plan(readersMoment(now))));
  }

  #write<Result>(plan: Plan<Result>): Result {
    return this.#use((session) => session.write(() => session.follow(plan)));
  }

  #use<Result>(use: (session: SqlSession) => Result): Result {
    try {
      return use(this.#open());
    } catch (error) {
      // After any error the next connection may work: a reader never gives the file up.
      this.close();
      throw error;
    }
  }

  #open(): SqlSession {
    const place = placeOf(this.#path);
    if (this.#file?.place === place) return this.#file.session;
    this.close();
    const session = new SqlSession(this.#path, this.#mode);
    try {
      requireCurrentSchema(session.database);
    } catch (error) {
      session.close();
      throw error;
    }
    this.#file = { session, place };
    return session;
  }
}

function placeOf(path: string): string {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch (cause) {
    throw new GroveError(
      "STORE_UNAVAILABLE",
      `there is no metadata store at ${path}: is the MetaServer's -meta another one?`,
      {
        cause,
      },
    );
  }
}

/** Leases by the file: the writer counts them on its steady clock, and writes each heartbeat's wall time. */
function readersMoment(now: Now): nodeCommands.Moment {
  const refuse = (): never => {
    throw new TypeError("a reader changes nothing");
  };
  return {
    wallMs: now.wallMs,
    isLive: (node) => now.wallMs - Number(node.last_seen_ms) < NODE_LEASE_MS,
    renew: refuse,
    placementWaitMs: refuse,
    holdPlacement: refuse,
  };
}
