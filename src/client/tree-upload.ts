// Uploads files and trees: folders before what is in them, many files at a time, each failure for itself.
import { lstatSync, realpathSync } from "node:fs";
import { localFailure } from "./client-error.ts";
import { type Cluster, LONG } from "./cluster.ts";
import { makeFolder } from "./folders.ts";
import { LARGE_FILE_BYTES, RESUMABLE_FROM_BYTES } from "./limits.ts";
import { type FileEntry, walkLocalTree } from "./local-tree.ts";
import type { ProgressMeter } from "./progress.ts";
import { isWithoutResume, uploadResumable } from "./resumable-upload.ts";
import { POOL_LIMITS, TransferPool } from "./transfer-pool.ts";
import { isFinal, type TransferReport } from "./transfer-report.ts";
import { type OnBytes, uploadFile } from "./upload.ts";
import type { UploadMemory } from "./upload-memory.ts";

/** One file or folder of this machine, and where it goes. */
export interface UploadSource {
  readonly path: string;
  readonly isFolder: boolean;
  readonly remotePath: string;
}

/** What an upload is made from. */
export interface TreeUploadDeps {
  readonly cluster: Cluster;
  readonly meter: ProgressMeter;
  readonly report: TransferReport;
  readonly memory: UploadMemory;
  /** Tells people something above the progress bar. */
  readonly note: (text: string) => void;
  /** Username of the root that it goes into; empty for one's own. */
  readonly root: string;
}

/** What is known of a folder on the cluster: that it could not be made, which has been told; that nothing was in it; or that it is there. */
type FolderState = "failed" | "empty" | "there";
type Folder = Promise<FolderState>;

/** One upload of any number of files and trees. */
export class TreeUpload {
  readonly #deps: TreeUploadDeps;
  readonly #pool: TransferPool;
  /** Folders that are not made yet, and who waits for them. */
  readonly #pending = new Set<(state: FolderState) => void>();

  constructor(deps: TreeUploadDeps) {
    this.#deps = deps;
    // Folders that will not be made any more must not keep waiting the large files in them.
    this.#pool = new TransferPool(POOL_LIMITS, () => {
      for (const settle of this.#pending) settle("failed");
    });
  }

  /** Uploads everything. Rejects only with what would have met every further file too. */
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

  async #addTree(source: UploadSource): Promise<void> {
    const { meter, report } = this.#deps;
    const folders = new Map<string, Folder>();
    for await (const entry of walkLocalTree(source.path)) {
      if (entry.kind === "skipped") {
        report.skip(entry.localPath, entry.why);
      } else if (entry.kind === "folder") {
        await this.#addFolder(source.remotePath, entry.place, folders);
      } else {
        meter.totalFiles++;
        meter.totalBytes += entry.sizeBytes;
        const folder = folders.get(entry.folder) ?? Promise.resolve("there");
        await this.#addFile(entry, join(source.remotePath, entry.place), folder);
      }
    }
  }

  async #addSingle(source: UploadSource): Promise<void> {
    const { meter } = this.#deps;
    let localPath: string;
    try {
      // A file that was named is meant, also through a link.
      localPath = realpathSync(source.path);
    } catch (error) {
      throw localFailure(error, source.path);
    }
    const sizeBytes = lstatSync(localPath).size;
    meter.totalFiles++;
    meter.totalBytes += sizeBytes;
    await this.#addFile({ localPath, sizeBytes }, source.remotePath, Promise.resolve("there"));
  }

  async #addFolder(top: string, place: string, folders: Map<string, Folder>): Promise<void> {
    const { cluster, report, root } = this.#deps;
    const path = join(top, place);
    const parent = place === "/" ? Promise.resolve("there") : folders.get(parentOf(place));
    const made = Promise.withResolvers<FolderState>();
    folders.set(place, made.promise);
    this.#pending.add(made.resolve);
    const settle = (state: FolderState): void => {
      this.#pending.delete(made.resolve);
      made.resolve(state);
    };
    const transfer = async (): Promise<void> => {
      try {
        if (((await parent) ?? "failed") === "failed") return settle("failed");
        const { childCount } = await makeFolder(cluster, { root, path }, { mayExist: true, patience: LONG });
        report.folders++;
        settle(childCount === 0n ? "empty" : "there");
      } catch (error) {
        settle("failed");
        if (isFinal(error)) throw error;
        report.fail(path, error);
      }
    };
    const added = this.#pool.add(transfer, "small");
    if (added !== true) await added;
  }

  async #addFile(
    file: Pick<FileEntry, "localPath" | "sizeBytes">,
    path: string,
    folder: Folder,
  ): Promise<void> {
    const { meter, report } = this.#deps;
    const onBytes = (bytes: number): void => {
      meter.doneBytes += bytes;
    };
    const transfer = async (): Promise<void> => {
      const state = await folder;
      if (state === "failed") return report.leaveOut();
      try {
        if (file.sizeBytes < RESUMABLE_FROM_BYTES) {
          await this.#sendPlain(file.localPath, path, { onBytes, isLikelyNew: state === "empty" });
        } else await this.#sendResumable(file.localPath, path, onBytes);
        meter.doneFiles++;
      } catch (error) {
        if (isFinal(error)) throw error;
        report.fail(file.localPath, error);
      }
    };
    const added = this.#pool.add(transfer, file.sizeBytes > LARGE_FILE_BYTES ? "large" : "small");
    if (added !== true) await added;
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

/** A place below the top, as a path on the cluster. */
function join(top: string, place: string): string {
  if (place === "/") return top;
  return top === "/" ? place : top + place;
}

function parentOf(place: string): string {
  const at = place.lastIndexOf("/");
  return at === 0 ? "/" : place.slice(0, at);
}
