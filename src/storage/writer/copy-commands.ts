// Copies within a root: shares chunks, builds trees in slices and shows them in one step (D13).
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";
import type { ContentRows } from "#storage/metadata/content-rows.ts";
import type {
  BeginCopyCommand,
  CopyChange,
  CopyFrame,
  CopyJob,
  CopyPlace,
  CopyReply,
  CopySliceCommand,
  CopySums,
  DropCopyCommand,
  FinishCopyCommand,
  ListCopy,
} from "#storage/metadata/copy-messages.ts";
import { NOTHING, withDirectory, withFile } from "#storage/metadata/copy-sums.ts";
import {
  directoryReply,
  fileReply,
  type InodeRow,
  type InodeRows,
  isDirectory,
} from "#storage/metadata/inode-rows.ts";
import { FLAG_DAMAGED, FLAG_HAS_GRANTS, KIND_DIRECTORY, KIND_FILE } from "#storage/metadata/schema.ts";
import { pathBelow, type ShareRows } from "#storage/metadata/share-rows.ts";
import {
  DIRECTORY_DEPTH_MAX,
  requireDepth,
  type TreeHeights,
  tooDeep,
} from "#storage/metadata/tree-heights.ts";
import {
  type DirectoryState,
  type Ledger,
  noLongerThere,
  type Place,
  type RootState,
} from "#storage/metadata/unit-of-work.ts";
import { authorOf, grown, pathExists, requireVersion } from "./entry-words.ts";
import { makeRoom } from "./make-room.ts";
import type { NamespaceCommands } from "./namespace-commands.ts";

/** Rows that one slice of a copy makes; it bounds the wait of other commands. */
export const COPY_SLICE_ROWS = 512;

interface Slice {
  readonly sourceId: InodeId;
  readonly root: RootState;
  readonly change: CopyChange;
  frames: CopyFrame[];
  list: ListCopy | null;
  bytes: number;
  inodes: number;
  rowsLeft: number;
}

/** True when only the step into the namespace is left. */
export function isCopied(job: CopyJob): boolean {
  return job.frames.length === 0 && (job.list === null || job.list.after === Number.MAX_SAFE_INTEGER);
}

/** Commands of copies; run one at a time within a transaction. */
export class CopyCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #content: ContentRows;
  readonly #namespace: NamespaceCommands;
  readonly #heights: TreeHeights;
  readonly #shares: ShareRows;
  readonly #insertCopying: StatementSync;
  readonly #deleteCopying: StatementSync;

  constructor(
    db: DatabaseSync,
    rows: {
      ledger: Ledger;
      inodes: InodeRows;
      content: ContentRows;
      namespace: NamespaceCommands;
      heights: TreeHeights;
      shares: ShareRows;
    },
  ) {
    this.#ledger = rows.ledger;
    this.#inodes = rows.inodes;
    this.#content = rows.content;
    this.#namespace = rows.namespace;
    this.#heights = rows.heights;
    this.#shares = rows.shares;
    this.#insertCopying = db.prepare("INSERT INTO copying (inode_id) VALUES (?)");
    this.#deleteCopying = db.prepare("DELETE FROM copying WHERE inode_id = ?");
  }

  begin(command: BeginCopyCommand): CopyReply {
    const { place, source } = this.#look(command);
    const { root } = place;
    this.#checkConflict(place, source, command);
    requireDepth(place.chain, this.#ledger.directory(source.id)?.height ?? 0, 0);
    const slice: Slice = {
      sourceId: source.id,
      root,
      change: command,
      frames: [],
      list: null,
      bytes: 0,
      inodes: 0,
      rowsLeft: COPY_SLICE_ROWS,
    };
    let topId: InodeId | null = null;
    if (isDirectory(source)) {
      topId = this.#insertDirectory(slice, source, null, command.name).id;
      this.#insertCopying.run(topId);
      slice.frames.push({ source: source.id, target: topId, after: "", sums: NOTHING });
    } else if (source.contentId !== null) {
      this.#beginList(slice, source, source.contentId, null);
    } else slice.bytes = source.size;
    this.#work(slice);
    const job = jobOf(slice, topId);
    return isCopied(job) ? this.finish({ ...command, op: "finishCopy", job }) : { job };
  }

  slice(command: CopySliceCommand): { readonly job: CopyJob } {
    const { job } = command;
    const root = this.#ledger.root(command.owner);
    const open = [...job.frames.map(({ source }) => source), ...(job.list === null ? [] : [job.list.fileId])];
    if (open.some((id) => this.#isKeptFrom(root, id, command))) {
      throw new GroveError("OVERLOADED", "shares of the source changed while it was copied; try again");
    }
    const slice: Slice = {
      sourceId: job.sourceId,
      root,
      change: command,
      frames: [...job.frames],
      list: job.list,
      bytes: job.bytes,
      inodes: job.inodes,
      rowsLeft: COPY_SLICE_ROWS,
    };
    this.#work(slice);
    return { job: jobOf(slice, job.topId) };
  }

  finish(command: FinishCopyCommand): ChangeReply {
    const { place, source } = this.#look(command);
    const { root, chain } = place;
    const { nowMs } = command;
    if (source.id !== command.job.sourceId) {
      throw new GroveError("OVERLOADED", "the source was replaced while it was copied; try again");
    }
    this.#checkConflict(place, source, command);
    const { name, freedBytes, excluded } = makeRoom(this.#inodes, command, (present) =>
      this.#namespace.replace(place, present, source, command),
    );
    const delta = (bytes: number): number => bytes - freedBytes;
    const path = pathBelow(chain, name);
    const keepOut = (inodeId: InodeId): void => this.#shares.keepOut(root, { inodeId, path }, excluded);
    if (command.job.topId === null) {
      const { contentId, row } = this.#finishedFile(source, command.job);
      const made = this.#namespace.insertFile(place, {
        name,
        size: row.size,
        crc32: row.crc32,
        mtimeMs: row.mtimeMs,
        nowMs,
        contentId,
        createdBy: authorOf(command),
      });
      if (made === undefined) throw pathExists();
      const bytes = row.size + this.#copyRest(root, row, made.id);
      if (bytes > command.maxBytes) throw grown();
      keepOut(made.id);
      return fileReply({ ...made, flags: row.flags & FLAG_DAMAGED }, root, delta(bytes));
    }
    const top = this.#ledger.directory(command.job.topId);
    if (top === undefined) throw noLongerThere();
    if (command.job.bytes > command.maxBytes || 1 + top.treeInodes > command.maxInodes) throw grown();
    requireDepth(chain, top.height, 0);
    this.#deleteCopying.run(top.id);
    this.#inodes.rename(top.id, { parentId: chain[0].id, name, ctimeMs: nowMs, version: top.version });
    this.#ledger.touch(top);
    Object.assign(top, { parentId: chain[0].id, name, ctimeMs: nowMs });
    const inodes = 1 + top.treeInodes;
    this.#ledger.count({ inodes });
    this.#ledger.addToUsage(root, { bytes: top.size, inodes, files: top.treeFiles });
    this.#ledger.addToChain(chain, { bytes: top.size, inodes, files: top.treeFiles });
    this.#namespace.enter(chain, top.height, nowMs);
    keepOut(top.id);
    return directoryReply(top, root, delta(command.job.bytes));
  }

  drop({ job }: DropCopyCommand): undefined {
    if (job.list !== null && this.#content.unstage(job.list.list)) {
      this.#content.purgeLater({ contentId: job.list.list });
    }
    if (job.topId !== null && this.#deleteCopying.run(job.topId).changes === 1) {
      this.#content.purgeLater({ inodeId: job.topId });
    }
    return undefined;
  }

  /** The current source and target. A directory cannot be copied into itself. */
  #look(command: CopyPlace): { place: Place; source: InodeRow } {
    const place = this.#namespace.place(command, command.parentId);
    const source = this.#namespace.entry(place.root, command.sourceId);
    // A detached or trashed inode counts as gone, although its row exists.
    this.#ledger.chain(place.root, source.parentId);
    requireVersion(this.#ledger, source, command.ifMatch);
    if (place.chain.some(({ id }) => id === source.id)) {
      throw new GroveError("BAD_ARGUMENT", "a directory cannot be copied into itself");
    }
    return { place, source };
  }

  #checkConflict({ chain }: Place, source: InodeRow, { name, onConflict, targetIfMatch }: CopyPlace): void {
    const present = this.#inodes.byName(chain[0].id, name);
    requireVersion(this.#ledger, present, targetIfMatch);
    if (present === undefined || onConflict === "rename") return;
    if (onConflict === "fail") throw pathExists();
    if (present.id === source.id) {
      throw new GroveError("BAD_ARGUMENT", "source and target are the same");
    }
  }

  #work(slice: Slice): void {
    while (slice.rowsLeft > 0) {
      if (slice.list !== null) {
        if (!this.#copyList(slice, slice.list)) return;
        continue;
      }
      const frame = slice.frames.pop();
      if (frame === undefined) return;
      this.#copyEntries(slice, frame);
    }
  }

  /** Copies entries up to the first directory or long file, which comes next. */
  #copyEntries(slice: Slice, frame: CopyFrame): void {
    const limit = slice.rowsLeft;
    const entries = this.#inodes.childrenAfter(frame.source, frame.after, limit);
    let { after, sums } = frame;
    for (const entry of entries) {
      slice.rowsLeft--;
      after = entry.name;
      if ((entry.flags & FLAG_HAS_GRANTS) !== 0 && this.#isKeptFrom(slice.root, entry.id, slice.change)) {
        continue;
      }
      if (entry.contentId !== null) {
        slice.frames.push({ ...frame, after, sums });
        this.#beginList(slice, entry, entry.contentId, frame.target);
        return;
      }
      if (isDirectory(entry)) {
        // A source that grows meanwhile ends here, at any target.
        if (slice.frames.length >= DIRECTORY_DEPTH_MAX) throw tooDeep(slice.frames.length + 1);
        slice.frames.push({ ...frame, after, sums });
        const made = this.#insertDirectory(slice, entry, frame.target, entry.name);
        slice.frames.push({ source: entry.id, target: made.id, after: "", sums: NOTHING });
        return;
      }
      this.#insertFile(slice, entry, frame.target, null);
      slice.bytes += entry.size;
      sums = withFile(sums, entry.size);
    }
    // A full answer may have more behind it.
    if (entries.length === limit) slice.frames.push({ ...frame, after, sums });
    else this.#settle(slice, frame.target, sums);
  }

  /** Completes a copied directory: its row gets the sums, and its parent counts it. Runs once for each. */
  #settle(slice: Slice, directoryId: InodeId, sums: CopySums): void {
    const directory = this.#ledger.directory(directoryId);
    if (directory === undefined) throw noLongerThere();
    const { bytes: size, entries: childCount, inodes: treeInodes, files: treeFiles, height } = sums;
    this.#ledger.touch(directory);
    Object.assign(directory, { size, childCount, treeInodes, treeFiles });
    this.#heights.set(directory, height);
    slice.rowsLeft--;
    const around = slice.frames.pop();
    if (around !== undefined) slice.frames.push({ ...around, sums: withDirectory(around.sums, sums) });
  }

  /** True for an entry that an exclusion hides from the copying user: a copy has what a listing shows. */
  #isKeptFrom(root: RootState, id: InodeId, { by, seesAll }: CopyChange): boolean {
    return by !== root.owner && seesAll !== true && this.#shares.at(id, by) === "exclusion";
  }

  #beginList(slice: Slice, file: InodeRow, sourceList: number, target: InodeId | null): void {
    const list = this.#ledger.takeId(slice.root);
    this.#content.stage(list, slice.root.number);
    slice.list = { fileId: file.id, version: file.version, sourceList, list, after: -1, target };
  }

  /** Copies positions of a list; false when its file is the copied one and all are there. */
  #copyList(slice: Slice, copy: ListCopy): boolean {
    const file = this.#inodes.byId(copy.fileId);
    if (file === undefined || file.version !== copy.version || file.contentId !== copy.sourceList) {
      throw new GroveError("OVERLOADED", "a file changed while it was copied; try again");
    }
    const last = this.#content.shareChunks(copy.sourceList, copy.list, {
      after: copy.after,
      below: Number.MAX_SAFE_INTEGER,
      limit: slice.rowsLeft,
    });
    slice.rowsLeft -= last.count;
    if (slice.rowsLeft <= 0) {
      slice.list = { ...copy, after: last.position };
      return true;
    }
    slice.rowsLeft--;
    if (copy.target === null) {
      slice.bytes = file.size;
      slice.list = { ...copy, after: Number.MAX_SAFE_INTEGER };
      return false;
    }
    const around = slice.frames.pop();
    if (around === undefined || !this.#content.unstage(copy.list)) throw noLongerThere();
    this.#insertFile(slice, file, copy.target, copy.list);
    slice.frames.push({ ...around, sums: withFile(around.sums, file.size) });
    slice.bytes += file.size;
    slice.list = null;
    return true;
  }

  #finishedFile(source: InodeRow, { list }: CopyJob): { contentId: number | null; row: InodeRow } {
    if (isDirectory(source)) throw noLongerThere();
    if (list === null) {
      if (source.contentId === null) return { contentId: null, row: source };
      throw new GroveError("OVERLOADED", "the file changed while it was copied; try again");
    }
    if (source.version === list.version && this.#content.unstage(list.list))
      return { contentId: list.list, row: source };
    throw new GroveError("OVERLOADED", "the file changed while it was copied; try again");
  }

  #insertFile(slice: Slice, file: InodeRow, parentId: InodeId, contentId: number | null): void {
    const id = this.#ledger.takeId(slice.root);
    const { name, size, crc32, mtimeMs } = file;
    const ctimeMs = slice.change.nowMs;
    const createdBy = authorOf(slice.change);
    const row = { id, parentId, name, kind: KIND_FILE, size, crc32, mtimeMs, ctimeMs, contentId, createdBy };
    if (!this.#inodes.insert(row)) throw pathExists();
    slice.inodes++;
    this.#ledger.count({ inodes: -1 });
    slice.bytes += this.#copyRest(slice.root, file, id);
  }

  /** The rest of a file: few bytes, the mark of damage, properties, whose bytes it returns. */
  #copyRest(root: RootState, file: InodeRow, id: InodeId): number {
    if (file.contentId === null) this.#content.putInline(id, this.#content.inline(file.id));
    if ((file.flags & FLAG_DAMAGED) !== 0) this.#inodes.setFlags(id, FLAG_DAMAGED);
    return this.#inodes.properties.copy(root, file.id, id);
  }

  #insertDirectory(slice: Slice, source: InodeRow, parentId: InodeId | null, name: string): DirectoryState {
    const id = this.#ledger.takeId(slice.root);
    const { nowMs } = slice.change;
    const createdBy = authorOf(slice.change);
    const { mtimeMs } = source;
    const row = { id, parentId, name, kind: KIND_DIRECTORY, size: 0, crc32: 0, mtimeMs, ctimeMs: nowMs };
    if (!this.#inodes.insert({ ...row, contentId: null, createdBy })) throw pathExists();
    slice.inodes++;
    slice.bytes += this.#inodes.properties.copy(slice.root, source.id, id);
    // Only visible inodes are counted.
    this.#ledger.count({ inodes: -1 });
    const state: DirectoryState = {
      id,
      parentId,
      name,
      size: 0,
      childCount: 0,
      treeInodes: 0,
      treeFiles: 0,
      height: 0,
      mtimeMs,
      ctimeMs: nowMs,
      version: 1,
      flags: 0,
      createdBy,
      savedFor: 0,
    };
    this.#ledger.addDirectory(state);
    return state;
  }
}

function jobOf({ sourceId, frames, list, bytes, inodes }: Slice, topId: InodeId | null): CopyJob {
  return { sourceId, topId, frames, list, bytes, inodes };
}
