// Uploads files and trees: folders before their contents, many files at a time, one failure per file.
import { lstatSync, realpathSync } from "node:fs";
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { shellWord } from "#base/shell-word.ts";
import { type Cluster, LONG } from "#client/connection/cluster.ts";
import { isFinal } from "#client/connection/final-failure.ts";
import { fileThere, makeFolder } from "#client/connection/folders.ts";
import { baseName, childPath, formatRemotePath, parentPath } from "#client/connection/remote-path.ts";
import { HintedRefusal, localFailure } from "#client/terminal/client-error.ts";
import { LARGE_FILE_BYTES, RESUMABLE_FROM_BYTES } from "#client/terminal/limits.ts";
import type { ProgressMeter } from "#client/terminal/progress.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { ComparedFolder, type EntryThere, entryThere } from "./compared-folder.ts";
import { toldTimeMs } from "./local-source.ts";
import { type FileEntry, walkLocalTree } from "./local-tree.ts";
import { isWithoutResume, uploadResumable } from "./resumable-upload.ts";
import { isSame, type Sameness } from "./sameness.ts";
import type { Surplus } from "./surplus.ts";
import { TransferPool } from "./transfer-pool.ts";
import type { TransferReport } from "./transfer-report.ts";
import { TransferWindow } from "./transfer-window.ts";
import { type OnBytes, uploadFile } from "./upload.ts";
import type { UploadMemory } from "./upload-memory.ts";

/** One file or folder of this machine, and its place. */
export interface UploadSource {
  readonly path: string;
  readonly isFolder: boolean;
  readonly remotePath: string;
  /** The rule for skipped files; undefined sends everything. */
  readonly sameness?: Sameness | undefined;
  /** The attributes found at its place, if any. */
  readonly there?: Attr | undefined;
}

/** Dependencies of an upload. */
export interface TreeUploadDeps {
  readonly cluster: Cluster;
  readonly meter: ProgressMeter;
  readonly report: TransferReport;
  readonly memory: UploadMemory;
  /** Prints a note above the progress bar. */
  readonly note: (text: string) => void;
  /** Username of the target root; empty for one's own. */
  readonly root: string;
  /** True when the surplus is asked for afterwards. */
  readonly isMirror: boolean;
  /** Called with the folder of a source, before it is filled. */
  readonly onTop: (source: UploadSource, folder: Attr) => Promise<void>;
}

/**
 * The state of a folder on the cluster: not made, which is reported already; empty; there; or its listing,
 * where it is compared.
 */
type FolderState = "failed" | "empty" | "there" | ComparedFolder;
type Folder = Promise<FolderState>;

/** A folder that the walk is in, or one above it. */
interface OpenFolder {
  readonly place: string;
  readonly folder: Folder;
}

/** A tree whose surplus is looked for. */
interface ComparedTree {
  readonly source: UploadSource;
  /** By their places. */
  readonly folders: Map<string, Folder>;
  /** Places of source entries that were not sent: nothing at them or in an unreadable folder is surplus. */
  readonly kept: Set<string>;
  /** True when the source is not empty. */
  hasEntries: boolean;
}

/** A file of this machine and its target. */
interface FileJob {
  readonly file: Pick<FileEntry, "localPath" | "sizeBytes" | "mtimeMs" | "ctimeMs">;
  readonly path: string;
  readonly folder: Folder;
  readonly source: UploadSource;
}

/** A folder that is there already. */
const THERE: Folder = Promise.resolve("there");

/** One upload of any number of files and trees. */
export class TreeUpload {
  readonly #deps: TreeUploadDeps;
  readonly #pool = new TransferPool();
  /** Of small files: a large one is sent by the chunk. */
  readonly #window = new TransferWindow();
  readonly #trees: ComparedTree[] = [];

  constructor(deps: TreeUploadDeps) {
    this.#deps = deps;
  }

  /** Uploads everything. Rejects only with failures that every further file would meet. */
  async run(sources: readonly UploadSource[]): Promise<void> {
    try {
      for (const source of sources) {
        if (source.isFolder) await this.#addTree(source);
        else await this.#addSingle(source);
      }
      this.#deps.meter.isTotalKnown = true;
    } finally {
      await this.#pool.done();
    }
  }

  /** The surplus of the compared folders, once everything is sent. */
  async surplus(): Promise<Surplus[]> {
    const found: Surplus[] = [];
    for (const { source, folders, kept, hasEntries } of this.#trees) {
      // An empty source is far more often an unmounted disk than a request to delete.
      if (!hasEntries) {
        this.#deps.report.skip(source.path, "it is empty, so nothing is taken away for it");
        continue;
      }
      for (const [place, folder] of folders) {
        const state = await folder;
        if (!(state instanceof ComparedFolder) || kept.has(place)) continue;
        for (const [name, { isFolder, sizeBytes }] of state.rest()) {
          const lost = childPath(place, name);
          if (this.#mayBeHere(join(source.path, lost))) continue;
          if (!kept.has(lost)) found.push({ path: join(source.remotePath, lost), isFolder, sizeBytes });
        }
      }
    }
    return found;
  }

  /** The entry may have appeared since its folder was read; what cannot be looked at is not taken away either. */
  #mayBeHere(localPath: string): boolean {
    try {
      return lstatSync(localPath, { throwIfNoEntry: false }) !== undefined;
    } catch (error) {
      this.#deps.report.skip(
        localPath,
        `it cannot be looked at (${errorText(error)}), so nothing is taken away for it`,
      );
      return true;
    }
  }

  async #addTree(source: UploadSource): Promise<void> {
    const { isMirror, meter, report } = this.#deps;
    const tree: ComparedTree | undefined =
      isMirror && source.sameness !== undefined
        ? { source, folders: new Map(), kept: new Set(), hasEntries: false }
        : undefined;
    if (tree !== undefined) this.#trees.push(tree);
    // The walk goes into the depth, and comes back to none that it has left: a tree may have very many folders.
    const line: OpenFolder[] = [];
    for await (const entry of walkLocalTree(source.path)) {
      if (tree !== undefined) tree.hasEntries ||= entry.place !== "/";
      if (entry.kind === "skipped") {
        report.skip(entry.localPath, entry.why);
        if (entry.place !== undefined) tree?.kept.add(entry.place);
      } else if (entry.kind === "folder") {
        await this.#addFolder(source, entry.place, { line, tree });
      } else {
        meter.totalFiles++;
        meter.totalBytes += entry.sizeBytes;
        const folder = line.at(-1)?.folder ?? THERE;
        await this.#addFile({ file: entry, path: join(source.remotePath, entry.place), folder, source });
      }
    }
  }

  async #addSingle(source: UploadSource): Promise<void> {
    const { meter } = this.#deps;
    let localPath: string;
    try {
      // A named file is meant, also through a link.
      localPath = realpathSync(source.path);
    } catch (error) {
      throw localFailure(error, source.path);
    }
    const { size: sizeBytes, mtimeMs, ctimeMs } = lstatSync(localPath);
    meter.totalFiles++;
    meter.totalBytes += sizeBytes;
    const file = { localPath, sizeBytes, mtimeMs: toldTimeMs(mtimeMs), ctimeMs };
    await this.#addFile({ file, path: source.remotePath, folder: THERE, source });
  }

  async #addFolder(
    source: UploadSource,
    place: string,
    { line, tree }: { readonly line: OpenFolder[]; readonly tree: ComparedTree | undefined },
  ): Promise<void> {
    const { report } = this.#deps;
    const path = join(source.remotePath, place);
    const above = parentPath(place);
    while (line.length > 0 && line.at(-1)?.place !== above) line.pop();
    const parent = line.at(-1)?.folder ?? THERE;
    const made = Promise.withResolvers<FolderState>();
    line.push({ place, folder: made.promise });
    tree?.folders.set(place, made.promise);
    const transfer = async (): Promise<void> => {
      try {
        const parentState = await parent;
        if (parentState === "failed") return made.resolve("failed");
        const state = await this.#enter(source, place, parentState);
        report.folders++;
        made.resolve(state);
      } catch (error) {
        if (isFinal(error)) throw error;
        report.fail(path, this.#inTheWay(error, path));
        made.resolve("failed");
      }
    };
    const added = this.#pool.add(transfer, "folder", parent);
    if (added !== true) await added;
  }

  /** Makes a folder, or lists it where it is compared. */
  async #enter(source: UploadSource, place: string, above: FolderState): Promise<FolderState> {
    const { cluster, onTop, root } = this.#deps;
    const path = join(source.remotePath, place);
    const isTop = place === "/";
    const top = isTop && source.sameness !== undefined ? source.there : undefined;
    let there: EntryThere | undefined;
    if (top !== undefined) there = entryThere(top);
    else if (above instanceof ComparedFolder) there = above.take(baseName(place));
    let isEmpty: boolean;
    if (there !== undefined) {
      if (!there.isFolder) throw new GroveError("NOT_DIRECTORY", fileThere(path));
      if (top !== undefined) await onTop(source, top);
      ({ isEmpty } = there);
    } else {
      const made = await makeFolder(cluster, { root, path }, { mayExist: true, patience: LONG });
      if (isTop) await onTop(source, made);
      isEmpty = made.childCount === 0n;
    }
    if (source.sameness === undefined) return isEmpty ? "empty" : "there";
    return isEmpty ? new ComparedFolder() : ComparedFolder.read(cluster, { root, path });
  }

  async #addFile(job: FileJob): Promise<void> {
    const { report } = this.#deps;
    const { file } = job;
    const transfer = async (): Promise<void> => {
      const state = await job.folder;
      if (state === "failed") return report.leaveOut();
      try {
        await this.#send(job, state);
      } catch (error) {
        if (isFinal(error)) throw error;
        report.fail(file.localPath, this.#inTheWay(error, job.path));
      }
    };
    const added = this.#pool.add(transfer, file.sizeBytes > LARGE_FILE_BYTES ? "large" : "small", job.folder);
    if (added !== true) await added;
  }

  /** The refusal of a file or folder where one of the other kind has its name, with what takes that away. */
  #inTheWay(error: unknown, path: string): unknown {
    if (!isGroveError(error, "IS_DIRECTORY", "NOT_DIRECTORY")) return error;
    // A file somewhere above is not what would be taken away.
    if (error.code === "NOT_DIRECTORY" && error.message !== fileThere(path)) return error;
    const flag = error.code === "IS_DIRECTORY" ? "-r " : "";
    const word = shellWord(formatRemotePath({ root: this.#deps.root, path }));
    return new HintedRefusal(error, `Move it to the trash first: grove rm ${flag}${word}`);
  }

  /** Sends a file, unless it is there. */
  async #send({ file, path, source }: FileJob, state: FolderState): Promise<void> {
    const { meter, report } = this.#deps;
    let there: EntryThere | undefined;
    if (state instanceof ComparedFolder) there = state.take(baseName(path));
    else if (!source.isFolder && source.there !== undefined) there = entryThere(source.there);
    if (source.sameness !== undefined && there !== undefined && !there.isFolder && !there.isDamaged) {
      const same = isSame({ ...file, path: file.localPath }, there, source.sameness);
      if (same === true || (await same)) {
        meter.leaveOut(file.sizeBytes);
        report.unchanged++;
        return;
      }
    }
    const onBytes = (bytes: number): void => {
      meter.doneBytes += bytes;
    };
    const isLikelyNew = state === "empty" || (state instanceof ComparedFolder && there === undefined);
    const send = (): Promise<void> =>
      file.sizeBytes < RESUMABLE_FROM_BYTES
        ? this.#sendPlain(file.localPath, path, { onBytes, isLikelyNew })
        : this.#sendResumable(file.localPath, path, onBytes);
    await (file.sizeBytes > LARGE_FILE_BYTES ? send() : this.#window.run(file.sizeBytes, send));
    meter.doneFiles++;
  }

  async #sendPlain(
    localPath: string,
    path: string,
    options: { readonly onBytes: OnBytes; readonly isLikelyNew: boolean },
  ): Promise<void> {
    const { cluster, root } = this.#deps;
    await cluster.runAt({ root, path }, LONG, (server) =>
      uploadFile(server, localPath, { root, path }, options),
    );
  }

  async #sendResumable(localPath: string, path: string, onBytes: OnBytes): Promise<void> {
    const { cluster, memory, note, root } = this.#deps;
    try {
      await uploadResumable({ cluster, memory, note, onBytes }, localPath, { root, path });
    } catch (error) {
      if (!isWithoutResume(error)) throw error;
      await this.#sendPlain(localPath, path, { onBytes, isLikelyNew: false });
    }
  }
}

/** A place below the top as a path on the cluster. */
function join(top: string, place: string): string {
  if (place === "/") return top;
  return top === "/" ? place : top + place;
}
