// The move of a root from one node to another, as the metadata store keeps it (D27).
import type { NodeCaller } from "./node-caller.ts";

/** Progress of a move. Every step may be repeated. */
export type RootMoveState =
  /** The target copies while the source serves. */
  | "copying"
  /** The target may switch with the current attempt; the source takes no changes meanwhile. */
  | "frozen"
  /** The root lives on the target; the source keeps its copy. */
  | "switched"
  /** The source may remove its copy. */
  | "confirmed"
  /** Both serve as before, and the target removes what has come. */
  | "undone"
  /** The source serves its copy again, since the target is lost with what has changed there. */
  | "returned";

/** What an operator decides of a move. */
export type MoveDecision = "confirm" | "undo" | "take_back";

/** A move, under the name of the root's owner. */
export interface RootMove {
  readonly moveId: string;
  readonly owner: string;
  readonly rootId: string;
  /** Ids of the nodes. */
  readonly source: string;
  readonly target: string;
  readonly state: RootMoveState;
  /** Counts the attempts to switch. */
  readonly attempt: number;
  /** A number that the root may have where its own is taken. */
  readonly number: number;
  /** Random; the nodes prove with it that they know the move. Never shown. */
  readonly secret: string;
  /** Wall time of its beginning and of its last step, in unix milliseconds. */
  readonly startedMs: number;
  readonly changedMs: number;
  /** Bytes of files and rows that have arrived, and buckets of rows that are left. */
  readonly bytes: number;
  readonly rows: number;
  readonly left: number;
  /** Why it does not go on, in words; empty while it does. Of one that has switched: the target has lost the root. */
  readonly problem: string;
  /** Sides that have ended their part. */
  readonly ended: readonly ("source" | "target")[];
  /** Of a lost move: who lists the root, and the move that has brought it there. */
  readonly rival?: { readonly fsId: string; readonly arrival: string } | undefined;
}

/**
 * True for a move whose source alone knows it, since the store is an older copy: the root is frozen until lists say
 * where it is. Its target is empty.
 */
export function isLost(move: Pick<RootMove, "state" | "target">): boolean {
  return isUnderWay(move) && move.target === "";
}

/** True until a move has switched or was undone. */
export function isUnderWay({ state }: Pick<RootMove, "state">): boolean {
  return state === "copying" || state === "frozen";
}

/** True while the source removes its copy, which an operator has confirmed. */
export function isRemovingCopy({ state, ended }: Pick<RootMove, "state" | "ended">): boolean {
  return state === "confirmed" && !ended.includes("source");
}

/** A move as one of its nodes hears of it. */
export interface NodeMove extends RootMove {
  readonly role: "source" | "target";
  /** Address of the other node; empty while the store does not know it. */
  readonly otherAddress: string;
}

/** A root that a move has taken from a node, by the node's own word. */
export interface ToldDeparture {
  readonly rootId: string;
  /** The node that it went to. */
  readonly target: string;
  /** The move; the ids of later ones are greater. */
  readonly moveId: string;
}

/** What a node tells of such roots as it registers; undefined from nodes that tell of none. */
export interface DeparturesTold {
  readonly departed?: readonly ToldDeparture[];
}

/** What a node tells of a root that it lists. */
export interface ArrivalTold {
  /** The move that brought it there last, empty for none; undefined from nodes that do not say it. */
  readonly arrival?: string | undefined;
}

/** A copy of a root from before the move that has taken it elsewhere. */
export interface FoundCopy {
  readonly owner: string;
  /** The node that has the root. */
  readonly target: string;
}

/** Copies in the list of a registering node, which keeps them and serves them no more. */
export interface CopiesFound {
  readonly copies?: readonly FoundCopy[];
}

/** The wish to move a root. */
export interface MoveOrder {
  readonly owner: string;
  readonly target: string;
}

/** A step of a node. */
export type MoveStep =
  /** The target tells how far it is. */
  | {
      readonly step: "progress";
      readonly bytes: number;
      readonly rows: number;
      readonly left: number;
      readonly problem: string;
    }
  /** The target begins an attempt to switch. */
  | { readonly step: "freeze" }
  /** The source takes an attempt back. */
  | { readonly step: "thaw"; readonly attempt: number }
  /** The target has everything, and takes the root. */
  | { readonly step: "switch"; readonly attempt: number }
  /** A node of the shared engine goes on in the place of one that has ended, and is the target from then on. */
  | { readonly step: "adopt" }
  /** The source has the root frozen for a move that the store has lost; or the target has it out of sight. */
  | { readonly step: "recall"; readonly owner: string; readonly isArriving: boolean }
  /** The sender has ended its part of a move that is confirmed or undone. */
  | { readonly step: "end" };

/** A root's bytes on its node: files, trash, and uploads that have begun. */
export interface RootSize {
  readonly owner: string;
  readonly bytes: number;
}

/** A page of a node's answer about sizes. */
export interface RootSizesPage {
  /** Number of the question. */
  readonly question: number;
  /** From 0 on. */
  readonly page: number;
  readonly isLast: boolean;
  readonly sizes: readonly RootSize[];
}

/** The last whole answer of a node. */
export interface RootSizesOfNode {
  readonly fsId: string;
  readonly question: number;
  readonly sizes: readonly RootSize[];
}

/** Commands about moves. Each is atomic and may be repeated. */
export interface RootMoveStore {
  /**
   * Begins the move of a root. A repeated order answers the move under way. Throws BAD_ARGUMENT for an unknown
   * root or node, a target that does not run or is drained, a root under another move, and a root of the shared
   * engine.
   */
  beginMove(order: MoveOrder): Promise<RootMove>;
  /**
   * Confirms a move that has switched, or undoes one that has not. Or takes the copy back into service that the
   * source of a switched one keeps, where the target does not run or lacks the root. Undefined when there is none.
   * Throws BAD_ARGUMENT when it is too early or too late for that, and for a confirmation while the root's node does
   * not run or lacks the root.
   */
  decideMove(owner: string, decision: MoveDecision): Promise<RootMove | undefined>;
  /** All moves by owner. */
  rootMoves(): Promise<RootMove[]>;
  /** Those of a node, and those whose target has ended and whose place it may take. Throws as `claimRoot` does. */
  movesOf(node: NodeCaller): Promise<NodeMove[]>;
  /** Takes a step; the answer is the move afterwards. Throws as `claimRoot` does, and NO_SUCH_PATH, FENCED. */
  advanceMove(node: NodeCaller, moveId: string, step: MoveStep): Promise<RootMove>;
  /** Places no new roots on a node any more, or places them again. */
  setDrained(fsId: string, isDrained: boolean): Promise<void>;
  /** Ids of nodes that get no new roots, since they are to be emptied. */
  drainedNodes(): Promise<string[]>;
  /** Asks nodes for the sizes of their roots; the number of the question. They answer within seconds. */
  wantRootSizes(): Promise<number>;
  /** The question that nodes are to answer now; 0 for none. */
  sizesWanted(): Promise<number>;
  /** Keeps a page of a node's answer. Throws as `claimRoot` does. */
  noteRootSizes(node: NodeCaller, told: RootSizesPage): Promise<void>;
  /** What nodes told last, by node. */
  rootSizes(): Promise<RootSizesOfNode[]>;
}
