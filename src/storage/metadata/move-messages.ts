// Commands about moving roots, and their answers.
import type { LocalMove, MoveBucket, MovedRootHead, MoveReceipt } from "#storage/contract/root-move.ts";

/** Begins to note the changes of a root that is to move away. */
export interface BeginExportCommand {
  readonly op: "beginExport";
  readonly moveId: string;
  readonly owner: string;
}

/** Marks a further part of what was there when the export began; answers whether anything is left. */
export interface MarkExportCommand {
  readonly op: "markExport";
  readonly moveId: string;
}

/** Records that buckets have arrived. */
export interface ReceiveCommand {
  readonly op: "receiveBuckets";
  readonly moveId: string;
  readonly receipts: readonly MoveReceipt[];
}

/** Refuses changes of the root. */
export interface FreezeCommand {
  readonly op: "freezeRoot";
  readonly moveId: string;
}

/** Allows changes again. */
export interface ThawCommand {
  readonly op: "thawRoot";
  readonly moveId: string;
}

/** Serves the root no more. */
export interface DepartCommand {
  readonly op: "departRoot";
  readonly moveId: string;
  readonly address: string;
  /** Id of the node that it went to. */
  readonly target: string;
}

/** Serves a root again that has departed. */
export interface TakeRootBackCommand {
  readonly op: "takeRootBack";
  readonly moveId: string;
}

/** Ends an export, or removes what has departed; answers whether anything is left to forget. */
export interface EndExportCommand {
  readonly op: "endExport";
  readonly moveId: string;
}

/** Begins an import. */
export interface BeginImportCommand {
  readonly op: "beginImport";
  readonly moveId: string;
  readonly owner: string;
  readonly numbers: readonly number[];
}

/** Replaces the rows of buckets. */
export interface PutBucketsCommand {
  readonly op: "putMoveBuckets";
  readonly moveId: string;
  readonly buckets: readonly MoveBucket[];
}

/** Remembers what the source has said of the frozen root. */
export interface KeepHeadCommand {
  readonly op: "keepMoveHead";
  readonly moveId: string;
  /** JSON. */
  readonly head: string;
}

/** Serves an arrived root. */
export interface FinishImportCommand {
  readonly op: "finishImport";
  readonly moveId: string;
  readonly head: MovedRootHead;
}

/** Removes a part of what has arrived; answers whether anything is left. */
export interface DropImportCommand {
  readonly op: "dropImport";
  readonly moveId: string;
}

/** Every command about moving roots. */
export type MoveCommand =
  | BeginExportCommand
  | BeginImportCommand
  | DepartCommand
  | DropImportCommand
  | EndExportCommand
  | FinishImportCommand
  | FreezeCommand
  | KeepHeadCommand
  | MarkExportCommand
  | PutBucketsCommand
  | ReceiveCommand
  | TakeRootBackCommand
  | ThawCommand;

/** Their answers. */
export interface MoveReplies {
  readonly beginExport: LocalMove;
  readonly markExport: boolean;
  readonly endExport: boolean;
  readonly freezeRoot: MovedRootHead;
  readonly beginImport: LocalMove;
  readonly putMoveBuckets: readonly MoveReceipt[];
  readonly dropImport: boolean;
}
