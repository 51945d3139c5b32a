// Commands on content: finished uploads, ranged writes, staged chunks, damage, and slices of purges.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { type InodeId, ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";
import type { ChangeFields, ChangeReply } from "#storage/metadata/change-messages.ts";
import { type ContentRows, PURGE_SLICE_ROWS } from "#storage/metadata/content-rows.ts";
import { type DamageRows, damagedText } from "#storage/metadata/damage-rows.ts";
import { holdToPath } from "#storage/metadata/followed-path.ts";
import { fileReply, type InodeRow, type InodeRows, isDirectory } from "#storage/metadata/inode-rows.ts";
import { MAY_BE_PURGED } from "#storage/metadata/moved-roots.ts";
import { FLAG_DAMAGED } from "#storage/metadata/schema.ts";
import type { TrashBin } from "#storage/metadata/trash-bin.ts";
import { type Ledger, noLongerThere, type Place, type RootState } from "#storage/metadata/unit-of-work.ts";
import { authorOf, pathExists, requireVersion } from "./entry-words.ts";
import type { NamespaceCommands } from "./namespace-commands.ts";
import type { Detached, PurgeCursor } from "./purge-cursor.ts";
import type { UploadCommands } from "./upload-commands.ts";
import type {
  CommitUploadCommand,
  NewContent,
  StageChunksCommand,
  StageKeptCommand,
  TruncateCommand,
  WriteChunksCommand,
  WriteInlineCommand,
} from "./write-commands.ts";

/** Commands on content; run one at a time within a transaction. */
export class ContentCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #content: ContentRows;
  readonly #namespace: NamespaceCommands;
  readonly #bin: TrashBin;
  readonly #damage: DamageRows;
  readonly #uploads: UploadCommands;
  readonly #nextPurge: StatementSync;
  readonly #nextPurgeOf: StatementSync;
  readonly #deletePurge: StatementSync;

  constructor(
    db: DatabaseSync,
    rows: {
      ledger: Ledger;
      inodes: InodeRows;
      content: ContentRows;
      namespace: NamespaceCommands;
      bin: TrashBin;
      damage: DamageRows;
      uploads: UploadCommands;
    },
  ) {
    this.#ledger = rows.ledger;
    this.#inodes = rows.inodes;
    this.#content = rows.content;
    this.#namespace = rows.namespace;
    this.#bin = rows.bin;
    this.#damage = rows.damage;
    this.#uploads = rows.uploads;
    // The newest first: entries that a slice detaches go before its siblings, so the table stays as small as
    // the tree is deep.
    const next = `SELECT id, inode_id AS inodeId, content_id AS contentId FROM purging WHERE ${MAY_BE_PURGED}`;
    this.#nextPurge = db.prepare(`${next} AND id < ? ORDER BY id DESC LIMIT 1`);
    this.#nextPurgeOf = db.prepare(
      `${next} AND coalesce(inode_id, content_id) / ${ROOT_STRIDE} = ? AND id < ? ORDER BY id DESC LIMIT 1`,
    );
    this.#deletePurge = db.prepare("DELETE FROM purging WHERE id = ?");
  }

  commitUpload(command: CommitUploadCommand): ChangeReply {
    const place = this.#namespace.place(command, command.parentId);
    const existing = this.#inodes.byName(command.parentId, command.name);
    if (existing !== undefined) {
      // The same refusal, in the same order, as for an upload that finds the directory before it begins.
      if (isDirectory(existing)) throw new GroveError("IS_DIRECTORY", "a directory has this name");
      if (command.onExists === "fail") throw pathExists();
    }
    requireVersion(this.#ledger, existing, command.ifMatch);
    const { contentId, unstagedBytes } = this.#takeContent(place, command.content);
    const reply =
      existing === undefined
        ? this.#commitNew(place, command, contentId)
        : this.#commitOver(place, command, contentId, existing);
    return unstagedBytes === 0 ? reply : { ...reply, usedDeltaBytes: reply.usedDeltaBytes - unstagedBytes };
  }

  #commitNew(place: Place, command: CommitUploadCommand, contentId: number | null): ChangeReply {
    const { name, nowMs, sizeBytes } = command;
    const row = this.#namespace.insertFile(place, {
      name,
      size: sizeBytes,
      crc32: command.crc32,
      mtimeMs: command.mtimeMs === 0 ? nowMs : command.mtimeMs,
      nowMs,
      contentId,
      createdBy: authorOf(command),
    });
    if (row === undefined) throw pathExists();
    if ("inline" in command.content) this.#content.putInline(row.id, command.content.inline);
    return fileReply(row, place.root, sizeBytes);
  }

  #commitOver(
    place: Place,
    command: CommitUploadCommand,
    contentId: number | null,
    old: InodeRow,
  ): ChangeReply {
    const keptBytes = this.#letGo(place, command, old);
    if ("inline" in command.content) this.#content.putInline(old.id, command.content.inline);
    const mtimeMs = command.mtimeMs === 0 ? command.nowMs : command.mtimeMs;
    const reply = this.#updateFile(place, old, {
      size: command.sizeBytes,
      crc32: command.crc32,
      mtimeMs,
      nowMs: command.nowMs,
      contentId,
      flags: old.flags & ~FLAG_DAMAGED,
    });
    return keptBytes === 0 ? reply : { ...reply, usedDeltaBytes: reply.usedDeltaBytes + keptBytes };
  }

  /**
   * The old content goes when its owner replaces it, and into the owner's trash when another user does (D13).
   */
  #letGo(place: Place, change: ChangeFields, old: InodeRow): number {
    if (change.by !== change.owner && old.size > 0) return this.#bin.keepContent(place, old, change);
    this.#content.release(old);
    return 0;
  }

  /** Writes into a small file; undefined when it is not small (any more): the caller then writes chunks. */
  writeInline(command: WriteInlineCommand): ChangeReply | undefined {
    const { place, row } = this.#file(command, command.fileId);
    requireVersion(this.#ledger, row, command.ifMatch);
    const { offset, data, nowMs } = command;
    const size = Math.max(row.size, offset + data.length);
    if (size > INLINE_FILE_MAX_BYTES) return undefined;
    const bytes = new Uint8Array(size);
    // A write over everything needs no old content, and makes a damaged file sound again.
    const isWhole = offset === 0 && data.length >= row.size;
    if (!isWhole) bytes.set(this.#soundInline(row));
    bytes.set(data, offset);
    this.#content.putInline(row.id, bytes);
    const flags = isWhole ? row.flags & ~FLAG_DAMAGED : row.flags;
    const update = { size, crc32: crc32(bytes), mtimeMs: nowMs, nowMs, contentId: null, flags };
    return this.#updateFile(place, row, update);
  }

  /** Replaces chunks of a file; undefined when the file has changed since they were made. */
  writeChunks(command: WriteChunksCommand): ChangeReply | undefined {
    const { place, row } = this.#file(command, command.fileId);
    if (row.version !== command.expectedVersion) return undefined;
    let { contentId } = row;
    if (contentId === null) {
      this.#content.release(row);
      contentId = this.#ledger.takeId(place.root);
    } else {
      for (const chunk of command.chunks) this.#content.releasePosition(contentId, chunk.position);
    }
    this.#content.addChunks(contentId, command.chunks);
    return this.#updateFile(place, row, {
      size: command.sizeBytes,
      crc32: command.crc32,
      mtimeMs: command.nowMs,
      nowMs: command.nowMs,
      contentId,
      flags: this.#damage.flagsOfNewChunks(row, contentId),
    });
  }

  /** Cuts a file; undefined when it has changed since the remaining content was made. */
  truncate(command: TruncateCommand): ChangeReply | undefined {
    const { place, row } = this.#file(command, command.fileId);
    if (row.version !== command.expectedVersion) return undefined;
    const { content, sizeBytes, nowMs } = command;
    const contentId = "chunks" in content ? this.#kept(place, row, command, content) : null;
    // Computed before the old content goes: its chunks show which of the new ones are damaged.
    const flags =
      contentId === null ? row.flags & ~FLAG_DAMAGED : this.#damage.flagsOfNewChunks(row, contentId);
    const keptBytes =
      contentId !== null && contentId === row.contentId ? 0 : this.#letGo(place, command, row);
    if ("inline" in content) this.#content.putInline(row.id, content.inline);
    const update = { size: sizeBytes, crc32: command.crc32, mtimeMs: nowMs, nowMs, contentId, flags };
    const reply = this.#updateFile(place, row, update);
    return { ...reply, usedDeltaBytes: reply.usedDeltaBytes + keptBytes };
  }

  /**
   * The list of what is left of a cut file. A short end is taken from the file's own list, unless that goes into
   * the trash as it is.
   */
  #kept(
    { root }: Place,
    { contentId: list, size }: InodeRow,
    { by, owner }: ChangeFields,
    kept: Exclude<TruncateCommand["content"], { readonly inline: Uint8Array }>,
  ): number | null {
    if (list === null) return null;
    const { keptBelow, chunks } = kept;
    let { contentId } = kept;
    const end = Math.ceil(size / CHUNK_BYTES);
    if (contentId !== undefined) this.#unstage(contentId);
    else if (by === owner && end - keptBelow <= PURGE_SLICE_ROWS) {
      contentId = list;
      for (let position = keptBelow; position < end; position++)
        this.#content.releasePosition(list, position);
    } else {
      if (keptBelow > PURGE_SLICE_ROWS)
        throw new GroveError("INTERNAL", "a long list is staged before its file is cut");
      contentId = this.#ledger.takeId(root);
      this.#content.shareChunks(list, contentId, { after: -1, below: keptBelow, limit: keptBelow });
    }
    this.#content.addChunks(contentId, chunks);
    return contentId;
  }

  /** Stages a part of a file's list beside it; undefined when the file has changed. */
  stageKept(command: StageKeptCommand): { readonly contentId: number } | undefined {
    const { place, row } = this.#file(command, command.fileId);
    if (row.version !== command.expectedVersion || row.contentId === null) return undefined;
    let { contentId } = command;
    if (contentId === undefined) {
      contentId = this.#ledger.takeId(place.root);
      this.#content.stage(contentId, place.root.number);
    }
    const range = { after: command.from - 1, below: command.below, limit: PURGE_SLICE_ROWS };
    this.#content.shareChunks(row.contentId, contentId, range);
    return { contentId };
  }

  #unstage(contentId: number): void {
    if (!this.#content.unstage(contentId))
      throw new GroveError("INTERNAL", "the upload's staged chunks are gone");
  }

  /** Stages chunks of an upload under way; returns the id of their list. */
  stageChunks({ owner, contentId, chunks }: StageChunksCommand): number {
    const root = this.#ledger.root(owner);
    let list = contentId;
    if (list === undefined) {
      list = this.#ledger.takeId(root);
      this.#content.stage(list, root.number);
    }
    this.#content.addChunks(list, chunks);
    return list;
  }

  dropStaged(contentId: number): void {
    if (this.#content.unstage(contentId)) this.#content.purgeLater({ contentId });
  }

  /** The newest that is detached and waits for its removal, below an id. */
  nextDetached(belowId: number): Detached | undefined {
    return this.#nextPurge.get(belowId) as Detached | undefined;
  }

  /** Removes a bounded part of what is detached in a root, where the cursor looks; false when nothing is there. */
  purgeSliceOf(root: number, cursor: PurgeCursor): boolean {
    const next = cursor.next((belowId) => this.#nextPurgeOf.get(root, belowId) as Detached | undefined);
    if (next !== undefined) this.purgeSlice(next);
    return next !== undefined;
  }

  /** Removes a bounded part of something detached. Returns the owner whose used bytes have shrunk by it. */
  purgeSlice(next: Detached): string | undefined {
    if (next.inodeId !== null) {
      const root = this.#ledger.rootOfId(next.inodeId);
      const before = root?.propertyBytes;
      this.#purgeDirectory(next.id, next.inodeId, root);
      return root?.propertyBytes === before ? undefined : root?.owner;
    }
    if (next.contentId !== null && !this.#content.releaseSlice(next.contentId))
      this.#deletePurge.run(next.id);
    return undefined;
  }

  #purgeDirectory(purgeId: number, directoryId: InodeId, root: RootState | undefined): void {
    // A file of the trash has no children, and goes with its content.
    const children = this.#inodes.children(directoryId, PURGE_SLICE_ROWS);
    let rows = 0;
    for (const child of children) {
      if (rows >= PURGE_SLICE_ROWS) return;
      if (!isDirectory(child)) {
        rows += this.#inodes.delete(child, root);
        continue;
      }
      const state = this.#ledger.directory(child.id);
      if (state !== undefined) {
        this.#ledger.touch(state);
        state.parentId = null;
      }
      this.#inodes.detach(child.id);
      rows += 2;
    }
    if (children.length > 0) return;
    this.#deletePurge.run(purgeId);
    const row = this.#inodes.byId(directoryId);
    if (row !== undefined) this.#inodes.delete(row, root);
  }

  /** Bytes of a small file. Throws CORRUPT when they do not match their checksum. */
  #soundInline(row: InodeRow): Uint8Array {
    const bytes = this.#content.inline(row.id);
    if ((row.flags & FLAG_DAMAGED) !== 0 || bytes.length !== row.size || crc32(bytes) !== row.crc32) {
      throw new GroveError("CORRUPT", damagedText);
    }
    return bytes;
  }

  /** The file to be written, and its place. */
  #file(change: ChangeFields, fileId: InodeId): { place: Place; row: InodeRow } {
    const root = this.#ledger.root(change.owner, change.accessVersion);
    const row = rootNumberOf(fileId) === root.number ? this.#inodes.byId(fileId) : undefined;
    if (row === undefined) throw noLongerThere();
    if (isDirectory(row)) throw new GroveError("IS_DIRECTORY", "a directory has no content to write");
    if (row.parentId === null) throw noLongerThere();
    const chain = this.#ledger.chain(root, row.parentId);
    holdToPath(change.at, chain, row.name);
    return { place: { root, chain }, row };
  }

  /** The list of the file's chunks, and the bytes of it that were counted as staged until now. */
  #takeContent(
    { root }: Place,
    content: NewContent,
  ): { readonly contentId: number | null; readonly unstagedBytes: number } {
    if ("inline" in content) {
      if (content.uploadId !== undefined) this.#uploads.take(content.uploadId, root);
      return { contentId: null, unstagedBytes: 0 };
    }
    if ("uploadId" in content) {
      const taken = this.#uploads.take(content.uploadId, root);
      this.#content.addChunks(taken.contentId, content.chunks);
      return { contentId: taken.contentId, unstagedBytes: taken.stagedBytes };
    }
    let { contentId } = content;
    if (contentId === undefined) contentId = this.#ledger.takeId(root);
    else this.#unstage(contentId);
    this.#content.addChunks(contentId, content.chunks);
    return { contentId, unstagedBytes: 0 };
  }

  #updateFile(
    { root, chain }: Place,
    old: InodeRow,
    file: {
      size: number;
      crc32: number;
      mtimeMs: number;
      nowMs: number;
      contentId: number | null;
      flags: number;
    },
  ): ChangeReply {
    const { nowMs, ...columns } = file;
    const update = { ...columns, version: old.version + 1, ctimeMs: nowMs };
    const bytes = file.size - old.size;
    const delta = { bytes, inodes: 0, files: 0 };
    this.#ledger.addToUsage(root, delta);
    this.#ledger.addToChain(chain, delta);
    this.#inodes.updateFile(old.id, update);
    return fileReply({ ...old, ...update }, root, bytes);
  }
}
