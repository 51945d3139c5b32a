// Commands of the main thread to the writer's thread, and their answers: plain values for the way between
// threads.
import { type ErrorCode, type ErrorMetadata, GroveError } from "#base/errors.ts";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import {
  type ConflictRule,
  type Counted,
  type ExpectedVersions,
  type FormerShare,
  type InodeId,
  StaleAccessError,
  type TreeConflictRule,
  type Usage,
} from "#storage/contract/inode.ts";
import type { PassName } from "#storage/contract/pass-types.ts";
import type { PropertyEdit, PropertyOutcome } from "#storage/contract/properties.ts";
import type { StorageFacts } from "#storage/contract/storage.ts";
import type { Trashed, TrashPurge } from "#storage/contract/trash.ts";
import type { StagingChange } from "#storage/contract/upload-store.ts";
import type { ChangeFields, ChangeReply } from "#storage/metadata/change-messages.ts";
import type {
  BeginCopyCommand,
  CopyReply,
  CopySliceCommand,
  DropCopyCommand,
  FinishCopyCommand,
} from "#storage/metadata/copy-messages.ts";
import type { DamageMark } from "#storage/metadata/damage-rows.ts";
import type { MoveCommand, MoveReplies } from "#storage/metadata/move-messages.ts";
import type {
  BoundUploadTimesCommand,
  CreateUploadCommand,
  DropUploadCommand,
  StageUploadCommand,
} from "#storage/metadata/upload-messages.ts";

import type { LinkCommand } from "./link-messages.ts";
import type { LockMessage } from "./lock-messages.ts";

/**
 * A file's new content: bytes in the database, or a list of chunks of which the first may be staged already.
 */
export type NewContent =
  | { readonly inline: Uint8Array; readonly uploadId?: string }
  | { readonly uploadId: string; readonly chunks: readonly NewChunk[] }
  | { readonly contentId: number | undefined; readonly chunks: readonly NewChunk[] };

/** Puts a finished upload into the namespace. */
export interface CommitUploadCommand extends ChangeFields {
  readonly op: "commitUpload";
  readonly parentId: InodeId;
  readonly name: string;
  readonly onExists: "replace" | "fail";
  readonly ifMatch: string | undefined;
  readonly mtimeMs: number;
  readonly sizeBytes: number;
  readonly crc32: number;
  readonly content: NewContent;
}

/** Makes a small file. */
export interface CreateFileCommand extends ChangeFields {
  readonly op: "createFile";
  readonly parentId: InodeId;
  readonly name: string;
  readonly data: Uint8Array;
  readonly mtimeMs: number;
}

/** Makes a directory. */
export interface CreateDirectoryCommand extends ChangeFields {
  readonly op: "createDirectory";
  readonly parentId: InodeId;
  readonly name: string;
}

/** Writes into a file that is small before and after. */
export interface WriteInlineCommand extends ChangeFields {
  readonly op: "writeInline";
  readonly fileId: InodeId;
  readonly offset: number;
  readonly data: Uint8Array;
  readonly ifMatch: string | undefined;
}

/** Cuts a file, unless its version has changed since the remaining content was made. */
export interface TruncateCommand extends ChangeFields {
  readonly op: "truncate";
  readonly fileId: InodeId;
  readonly expectedVersion: number;
  readonly sizeBytes: number;
  readonly crc32: number;
  /** Chunks below a position stay, in a staged list where that is given; a new one replaces the one that is cut. */
  readonly content:
    | { readonly inline: Uint8Array }
    | {
        readonly keptBelow: number;
        readonly chunks: readonly NewChunk[];
        readonly contentId?: number | undefined;
      };
}

/**
 * Gives a staged list the chunks of a file between two positions, the second one excluded, unless the file's
 * version has changed. The first one makes the list.
 */
export interface StageKeptCommand extends ChangeFields {
  readonly op: "stageKept";
  readonly fileId: InodeId;
  readonly expectedVersion: number;
  readonly contentId: number | undefined;
  readonly from: number;
  readonly below: number;
}

/** Replaces chunks of a file, unless its version has changed since they were made. */
export interface WriteChunksCommand extends ChangeFields {
  readonly op: "writeChunks";
  readonly fileId: InodeId;
  readonly expectedVersion: number;
  readonly sizeBytes: number;
  readonly crc32: number;
  readonly chunks: readonly NewChunk[];
}

/** Moves or renames. */
export interface RenameCommand extends ChangeFields, ExpectedVersions {
  readonly op: "rename";
  readonly inodeId: InodeId;
  readonly parentId: InodeId;
  readonly name: string;
  /** The path that was followed to the new place, as `at` is for the old one. */
  readonly targetAt?: string | undefined;
  readonly onConflict: TreeConflictRule;
}

/** Removes for good. */
export interface RemoveCommand extends ChangeFields {
  readonly op: "remove";
  readonly inodeId: InodeId;
  readonly recursive: boolean;
}

/** Lets a user reach an inode and everything below it. */
export interface ShareCommand extends ChangeFields {
  readonly op: "share";
  readonly inodeId: InodeId;
  readonly username: string;
}

/** Ends that access, for everything below as well. */
export interface UnshareCommand extends ChangeFields {
  readonly op: "unshare";
  readonly inodeId: InodeId;
  readonly username: string;
}

/** Changes properties of an inode. */
export interface ChangePropertiesCommand extends ChangeFields {
  readonly op: "changeProperties";
  readonly inodeId: InodeId;
  readonly edits: readonly PropertyEdit[];
}

/** Makes a root. */
export interface CreateRootCommand {
  readonly op: "createRoot";
  readonly owner: string;
  readonly rootId: string;
  /** Given out for the whole cluster; undefined for the data folder's next. */
  readonly number?: number | undefined;
  readonly nowMs: number;
}

/** Hands over chunks of an upload before its commit. */
export interface StageChunksCommand {
  readonly op: "stageChunks";
  readonly owner: string;
  readonly contentId: number | undefined;
  readonly chunks: readonly NewChunk[];
}

/** Drops what an aborted upload staged. */
export interface DropStagedCommand {
  readonly op: "dropStaged";
  readonly contentId: number;
}

/** Forgets garbage after the removal of its files. */
export interface DropGarbageCommand {
  readonly op: "dropGarbage";
  readonly chunkIds: readonly number[];
}

/** Records that files in a directory below chunks/ may lack rows after a crash. */
export interface OpenChunkDirectoryCommand {
  readonly op: "openChunkDirectory";
  readonly directory: string;
}

/** Clears that record. */
export interface CloseChunkDirectoryCommand {
  readonly op: "closeChunkDirectory";
  readonly directory: string;
}

/** Marks damage; see DamageRows. The answer is the number of marked files. */
export interface MarkDamagedCommand extends DamageMark {
  readonly op: "markDamaged";
}

/** Moves a file or a whole folder into the trash. */
export interface TrashCommand extends ChangeFields {
  readonly op: "trash";
  readonly inodeId: InodeId;
  /** Etag that it must have; undefined for any. */
  readonly ifMatch?: string | undefined;
}

/** Takes an item out of the trash. */
export interface RestoreCommand extends ChangeFields {
  readonly op: "restore";
  readonly trashId: string;
  /** Names from the root down to the item's new place; undefined for where it was. */
  readonly names: readonly string[] | undefined;
  readonly onConflict: ConflictRule;
}

/** Removes items of the trash for good. */
export interface PurgeTrashCommand {
  readonly op: "purgeTrash";
  readonly owner: string;
  /** Missing ones are skipped; at most TRASH_PURGE_BATCH. */
  readonly trashIds: readonly string[];
}

/** Saves the progress of a pass. */
export interface SavePassCommand {
  readonly op: "savePass";
  readonly name: PassName;
  /** Its record as JSON. */
  readonly record: string;
}

/** Puts a person's new username in place of the old one; a version that was carried out changes nothing. */
export interface RenameUserCommand {
  readonly op: "renameUser";
  readonly from: string;
  readonly to: string;
  readonly version: number;
}

/** The same for the makers of a part of all inodes, those after an id. The answer is the id to go on after. */
export interface RenameCreatorCommand {
  readonly op: "renameCreator";
  readonly from: string;
  readonly to: string;
  readonly version: number;
  readonly after: InodeId;
}

/** Every command that changes the database. */
export type Command =
  | BeginCopyCommand
  | BoundUploadTimesCommand
  | CloseChunkDirectoryCommand
  | CommitUploadCommand
  | CreateDirectoryCommand
  | CreateFileCommand
  | CopySliceCommand
  | CreateRootCommand
  | CreateUploadCommand
  | DropGarbageCommand
  | DropCopyCommand
  | DropStagedCommand
  | DropUploadCommand
  | FinishCopyCommand
  | LinkCommand
  | LockMessage
  | MarkDamagedCommand
  | MoveCommand
  | OpenChunkDirectoryCommand
  | PurgeTrashCommand
  | RemoveCommand
  | RenameCommand
  | RenameCreatorCommand
  | RenameUserCommand
  | RestoreCommand
  | ShareCommand
  | SavePassCommand
  | StageChunksCommand
  | TrashCommand
  | ChangePropertiesCommand
  | UnshareCommand
  | StageKeptCommand
  | StageUploadCommand
  | TruncateCommand
  | WriteChunksCommand
  | WriteInlineCommand;

/** Answer to a removal. */
export interface RemovalReply {
  readonly freedBytes: number;
  readonly inodeCount: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}

/** Answer to a restore. */
export interface RestoreReply extends ChangeReply {
  readonly names: readonly string[];
  readonly formerShares: readonly FormerShare[];
}

/** Answer to a share or its end. */
export interface SharingReply {
  readonly affectedInodes: number;
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
}

/** A root in an answer of the writer. */
export interface RootReply {
  readonly owner: string;
  readonly rootId: string;
  readonly directoryId: InodeId;
  readonly accessVersion: number;
  readonly lockVersion: number;
  readonly lockCount: number;
  readonly usage: Usage;
}

/** A refusal on its way between threads. */
export interface RefusedReply {
  readonly refused:
    | { readonly code: ErrorCode; readonly message: string; readonly metadata: ErrorMetadata }
    | "stale";
}

/** Answer to a command, from the part of the writer that runs it. */
export type CommandReply =
  | ChangeReply
  | Omit<PropertyOutcome, "inodeDelta">
  | CopyReply
  | TrashPurge
  | RemovalReply
  | RestoreReply
  | RootReply
  | SharingReply
  | StagingChange
  | Trashed
  | MoveReplies[keyof MoveReplies]
  | { readonly contentId: number }
  | number
  | undefined;

/** Answer to one command, with the command's number. */
export type Reply = readonly [number, Counted<CommandReply> | RefusedReply];

/** From the main thread: commands with their numbers, or the request to end. */
export type WriterRequest =
  | {
      readonly commands: readonly (readonly [number, Command])[];
      /** Most commands in one transaction. */
      readonly atOnce: number;
    }
  | { readonly close: "checkpoint" | "leave" };

/** From the writer: the answers of one transaction, the reason of its failure, or that it has closed. */
export interface WriterAnswer {
  readonly replies: readonly Reply[];
  readonly facts: StorageFacts;
  /** True when rows were added to the garbage table. */
  readonly hasGarbage: boolean;
  /** Owners of roots whose grants, or their paths, may have changed. */
  readonly sharesChanged: readonly string[];
  /** Owners whose used bytes a purge has reduced. */
  readonly freed: readonly string[];
  readonly failure: string | undefined;
  readonly closed: boolean;
}

/** Packs a refusal as plain values; undefined for any other error. */
export function packRefusal(error: unknown): RefusedReply | undefined {
  if (error instanceof StaleAccessError) return { refused: "stale" };
  return error instanceof GroveError ? packGroveError(error) : undefined;
}

/** The same for a GroveError. */
export function packGroveError({ code, message, metadata }: GroveError): RefusedReply {
  return { refused: { code, message, metadata } };
}

/** Unpacks the error. */
export function unpackRefusal({ refused }: RefusedReply): Error {
  if (refused === "stale")
    return new StaleAccessError("who may reach what has changed; check again and repeat");
  return new GroveError(refused.code, refused.message, { metadata: refused.metadata });
}
