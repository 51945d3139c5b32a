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
  | "undone";

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
  /** Why it does not go on, in words; empty while it does. */
  readonly problem: string;
  /** Sides that have ended their part. */
  readonly ended: readonly ("source" | "target")[];
}

/** True until a move has switched or was undone. */
export function isUnderWay({ state }: Pick<RootMove, "state">): boolean {
  return state === "copying" || state === "frozen";
}

/** A move as one of its nodes hears of it. */
export interface NodeMove extends RootMove {
  readonly role: "source" | "target";
  /** Address of the other node; empty while the store does not know it. */
  readonly otherAddress: string;
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
   * Confirms a move that has switched, or undoes one that has not. Undefined when there is none. Throws
   * BAD_ARGUMENT when it is too early or too late for that.
   */
  decideMove(owner: string, decision: "confirm" | "undo"): Promise<RootMove | undefined>;
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
