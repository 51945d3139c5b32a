// One run of an import: folders before their files, many files at a time, only what is not there already.
import { GroveError } from "#base/errors.ts";
import { type Cluster, LONG } from "#client/connection/cluster.ts";
import { isFinal } from "#client/connection/final-failure.ts";
import { makeFolder } from "#client/connection/folders.ts";
import { baseName, parentPath, type RemotePath } from "#client/connection/remote-path.ts";
import { LARGE_FILE_BYTES, RESUMABLE_FROM_BYTES } from "#client/terminal/limits.ts";
import type { ProgressMeter } from "#client/terminal/progress.ts";
import { ComparedFolder, type EntryThere } from "#client/transfer/compared-folder.ts";
import { type SourceState, unchanged } from "#client/transfer/local-source.ts";
import {
  isWithoutResume,
  type ResumableSource,
  uploadFromSource,
} from "#client/transfer/resumable-upload.ts";
import { TransferPool } from "#client/transfer/transfer-pool.ts";
import type { TransferReport } from "#client/transfer/transfer-report.ts";
import { TransferWindow } from "#client/transfer/transfer-window.ts";
import { uploadChunks } from "#client/transfer/upload.ts";
import type { UploadMemory } from "#client/transfer/upload-memory.ts";
import { crc32 } from "#os/crc32.ts";
import type { ImportReport, Outcome } from "./import-report.ts";
import type { ImportFile, ImportSource } from "./import-source.ts";

/** Dependencies of a run. */
export interface ImportDeps {
  readonly cluster: Cluster;
  readonly source: ImportSource;
  readonly meter: ProgressMeter;
  readonly report: TransferReport;
  readonly lines: ImportReport;
  readonly memory: UploadMemory;
  /** Prints a note above the progress bar. */
  readonly note: (text: string) => void;
  /** Where everything goes. */
  readonly target: RemotePath;
  /** True compares contents, for which files that seem to be there are read from the source. */
  readonly byChecksum: boolean;
  /** True changes nothing on the cluster. */
  readonly isDryRun: boolean;
}

/** What is known of a folder on the cluster; undefined after a failure, which is reported already. */
type Folder = Promise<ComparedFolder | undefined>;

/** Imports everything. Rejects only with failures that every further file would meet. */
export class ImportRun {
  readonly #deps: ImportDeps;
  readonly #pool = new TransferPool();
  /** Of small files: of a large one a few chunks are in memory. */
  readonly #window = new TransferWindow();
  /** Folders whose files may still come: a walk goes through one folder and those above it. */
  readonly #folders = new Map<string, Folder>();

  constructor(deps: ImportDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    const { source, meter } = this.#deps;
    try {
      for await (const entry of source.entries()) {
        if (entry.kind === "folder") await this.#addFolder(entry.place);
        else if (entry.kind === "file") await this.#addFile(entry);
        else await this.#skip(entry.place, entry.why);
      }
      meter.isTotalKnown = true;
    } finally {
      await this.#pool.done();
    }
  }

  async #skip(place: string, why: string): Promise<void> {
    this.#deps.report.skip(place, why);
    await this.#deps.lines.add(place, "skipped", 0, why);
  }

  async #addFolder(place: string): Promise<void> {
    const parent = place === "/" ? undefined : this.#folders.get(parentPath(place));
    const entered = Promise.withResolvers<ComparedFolder | undefined>();
    this.#folders.set(place, entered.promise);
    const transfer = async (): Promise<void> => {
      let folder: ComparedFolder | undefined;
      try {
        const above = await parent;
        if (place === "/" || above !== undefined) folder = await this.#enter(place, above);
      } catch (error) {
        if (isFinal(error)) throw error;
        this.#deps.report.fail(place, error);
        await this.#line(place, "failed", 0, error);
      } finally {
        entered.resolve(folder);
      }
    };
    const added = this.#pool.add(transfer, "folder", parent);
    if (added !== true) await added;
  }

  async #enter(place: string, above: ComparedFolder | undefined): Promise<ComparedFolder> {
    const { cluster, report, target, isDryRun } = this.#deps;
    const path = { root: target.root, path: join(target.path, place) };
    const there = above?.take(baseName(place));
    if (there !== undefined && !there.isFolder)
      throw new GroveError("NOT_DIRECTORY", `${path.path} is a file`);
    report.folders++;
    if (there !== undefined) return there.isEmpty ? new ComparedFolder() : ComparedFolder.read(cluster, path);
    if (isDryRun) {
      if (place !== "/") return new ComparedFolder();
      return ComparedFolder.read(cluster, path).catch((error: unknown) => {
        if (error instanceof GroveError && error.code === "NO_SUCH_PATH") return new ComparedFolder();
        throw error;
      });
    }
    if (path.path === "/") return ComparedFolder.read(cluster, path);
    const made = await makeFolder(cluster, path, { mayExist: true, patience: LONG });
    return made.childCount === 0n ? new ComparedFolder() : ComparedFolder.read(cluster, path);
  }

  async #addFile(file: ImportFile): Promise<void> {
    const { meter, report } = this.#deps;
    meter.totalFiles++;
    meter.totalBytes += file.sizeBytes;
    const folder = this.#folders.get(file.folder);
    const transfer = async (): Promise<void> => {
      const state = await folder;
      if (state === undefined) {
        report.leaveOut();
        return this.#line(file.place, "failed", 0, new Error("its folder could not be made"));
      }
      try {
        const outcome = await this.#import(file, state.take(baseName(file.place)));
        await this.#line(file.place, outcome, file.sizeBytes);
      } catch (error) {
        if (isFinal(error)) throw error;
        report.fail(file.place, error);
        await this.#line(file.place, "failed", 0, error);
      }
    };
    const added = this.#pool.add(transfer, file.sizeBytes > LARGE_FILE_BYTES ? "large" : "small", folder);
    if (added !== true) await added;
  }

  async #import(file: ImportFile, there: EntryThere | undefined): Promise<Outcome> {
    const { meter, report, isDryRun } = this.#deps;
    if (there?.isFolder === true) throw new GroveError("IS_DIRECTORY", `${file.place} is a folder there`);
    if (there !== undefined && !there.isDamaged && (await this.#isSame(file, there))) {
      meter.leaveOut(file.sizeBytes);
      report.unchanged++;
      return "unchanged";
    }
    const send = (): Promise<void> => this.#send(file);
    if (!isDryRun) {
      await (file.sizeBytes > LARGE_FILE_BYTES ? send() : this.#window.run(file.sizeBytes, send));
    }
    meter.doneFiles++;
    return isDryRun ? "would be imported" : "imported";
  }

  async #isSame(file: ImportFile, there: EntryThere): Promise<boolean> {
    if (file.sizeBytes !== there.sizeBytes) return false;
    // A source without times tells too little.
    if (!this.#deps.byChecksum) return file.mtimeMs !== 0 && file.mtimeMs === there.mtimeMs;
    let crc = 0;
    for await (const chunk of this.#deps.source.chunks(file, 0)) crc = crc32(chunk, crc);
    return crc === there.crc32;
  }

  async #send(file: ImportFile): Promise<void> {
    const { cluster, memory, meter, note, source, target } = this.#deps;
    const place = { root: target.root, path: join(target.path, file.place) };
    const onBytes = (bytes: number): void => {
      meter.doneBytes += bytes;
    };
    const name = `${source.name}\0${file.address}`;
    const resumable: ResumableSource = {
      label: file.place,
      look: async () => ({ path: name, ...(await source.look(file)) }),
      chunks: (_, fromBytes) => source.chunks(file, fromBytes),
    };
    if (file.sizeBytes >= RESUMABLE_FROM_BYTES) {
      try {
        await uploadFromSource({ cluster, memory, note, onBytes }, resumable, place);
        return;
      } catch (error) {
        if (!isWithoutResume(error)) throw error;
      }
    }
    await cluster.runAt(place, LONG, async (server) => {
      const { sizeBytes, mtimeMs } = file;
      const chunks = unchanged(source.chunks(file, 0), sizeBytes, {
        path: file.place,
        isSame: async () => isAsListed(file, await source.look(file)),
      });
      await uploadChunks(server, chunks, { ...place, sizeBytes, mtimeMs }, onBytes);
    });
  }

  async #line(place: string, outcome: Outcome, bytes: number, error?: unknown): Promise<void> {
    await this.#deps.lines.add(place, outcome, bytes, error instanceof Error ? error.message : "");
  }
}

function isAsListed(file: ImportFile, now: SourceState): boolean {
  return (
    file.sizeBytes === now.sizeBytes && file.mtimeMs === now.mtimeMs && file.version === (now.version ?? "")
  );
}

/** A place below the top as a path on the cluster. */
function join(top: string, place: string): string {
  if (place === "/") return top;
  return top === "/" ? place : top + place;
}
