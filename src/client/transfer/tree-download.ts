// Downloads files and trees: listings ahead, many files at a time, one failure per file.

import { lstatSync } from "node:fs";
import { join } from "node:path";
import { FILE_MAX_BYTES } from "#base/limits.ts";
import { type Cluster, LONG, type Server } from "#client/connection/cluster.ts";
import { isFinal } from "#client/connection/final-failure.ts";
import { isFolder, listPages } from "#client/connection/listing.ts";
import { childPath, type RemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import {
  FOLDER_DEPTH_MAX,
  FOLDERS_IN_FLIGHT,
  LARGE_FILE_BYTES,
  RESUMABLE_FROM_BYTES,
  SMALL_FILE_BYTES,
  SURPLUS_MAX,
} from "#client/terminal/limits.ts";
import type { ProgressMeter } from "#client/terminal/progress.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { downloadFile, readWholeFile } from "./download.ts";
import { LocalFileWriter, removeLeftFiles, writeSmallFile } from "./local-file.ts";
import { type FolderPlace, LocalFolder } from "./local-folder.ts";
import { toldTimeMs } from "./local-source.ts";
import type { LocalSurplus } from "./local-surplus.ts";
import { downloadResumable } from "./resumable-download.ts";
import { isSame, type Sameness } from "./sameness.ts";
import { TransferPool } from "./transfer-pool.ts";
import type { TransferReport } from "./transfer-report.ts";
import { TransferWindow } from "./transfer-window.ts";
import type { OnBytes } from "./upload.ts";

/** One file or folder of the cluster, and its place. */
export interface DownloadSource extends RemotePath {
  readonly attr: Attr;
  readonly localFolder: string;
  readonly localName: string;
  /** The rule for skipped files; undefined fetches everything. */
  readonly sameness?: Sameness | undefined;
  /** True when an earlier run was cut: its partial files are removed. */
  readonly isCutBefore?: boolean;
  /** True to find surplus entries in its place. */
  readonly isMirror?: boolean;
}

/** Dependencies of a download. */
export interface TreeDownloadDeps {
  readonly cluster: Cluster;
  readonly meter: ProgressMeter;
  readonly report: TransferReport;
  /** Prints a note above the progress bar. */
  readonly note: (text: string) => void;
  /** Called when a source's folder exists, before it is filled. */
  readonly onTop: (source: DownloadSource) => Promise<void>;
}

/** A folder of the cluster to list into a local one. */
interface Visit {
  readonly remote: RemotePath;
  readonly local: LocalFolder;
  readonly depth: number;
  readonly source: DownloadSource;
  readonly inside: WaitingFolders;
}

/** Folders of one parent that wait to be listed. Trees may have very many, so each is its name alone. */
interface WaitingFolders {
  readonly remote: RemotePath;
  readonly local: FolderPlace;
  readonly depth: number;
  readonly source: DownloadSource;
  readonly names: string[];
}

/** An entry of a listing. */
interface Found {
  readonly attr: Attr;
  /** The server's name for it, unchecked. */
  readonly name: string;
  readonly remote: RemotePath;
}

/** A file of the cluster and its place on this machine. */
interface FileJob {
  readonly remote: RemotePath;
  readonly folder: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly etag: string;
  readonly mtimeMs: number;
  readonly crc32: number;
  readonly sameness: Sameness | undefined;
}

/** One download of any number of files and trees. */
export class TreeDownload {
  readonly #deps: TreeDownloadDeps;
  readonly #pool = new TransferPool();
  /** Of small files: a large one is asked for by the window of its stream. */
  readonly #window = new TransferWindow();
  readonly #surplus: LocalSurplus[] = [];

  constructor(deps: TreeDownloadDeps) {
    this.#deps = deps;
  }

  /** The surplus in mirrored folders, once everything is fetched. */
  get surplus(): readonly LocalSurplus[] {
    return this.#surplus;
  }

  /** Downloads everything. Rejects only with failures that every further file would meet. */
  async run(sources: readonly DownloadSource[]): Promise<void> {
    const { meter, report } = this.#deps;
    try {
      for (const source of sources) {
        const remote = { root: source.root, path: source.path };
        const { attr, sameness } = source;
        if (isFolder(attr)) {
          const local = LocalFolder.top(pathIn(source));
          await this.#deps.onTop(source);
          report.folders++;
          await this.#addTree(visitOf({ remote, local, depth: 0, source }));
        } else {
          const place = { folder: source.localFolder, name: source.localName };
          await this.#addFile({ remote, ...place, ...contentOf(attr), sameness });
        }
      }
      meter.isTotalKnown = true;
    } finally {
      await this.#pool.done();
    }
  }

  /** Lists several folders at a time: with few files in each, the way to the server is what takes long. */
  async #addTree(top: Visit): Promise<void> {
    // A stack, so that few folders wait in a wide tree.
    const waiting: WaitingFolders[] = [];
    let first: Visit | undefined = top;
    const failures: unknown[] = [];
    const surplusBefore = this.#surplus.length;
    let [listing, ended] = [0, Promise.withResolvers<void>()];
    for (;;) {
      while (listing < FOLDERS_IN_FLIGHT && failures.length === 0) {
        const visit = first ?? this.#next(waiting);
        first = undefined;
        if (visit === undefined) break;
        listing++;
        this.#visit(visit, waiting)
          .catch((error: unknown) => failures.push(error))
          .finally(() => {
            listing--;
            ended.resolve();
          });
      }
      if (listing === 0) break;
      await ended.promise;
      ended = Promise.withResolvers();
    }
    if (failures.length > 0) throw failures[0];
    // The folders came in no order.
    const found = this.#surplus.splice(surplusBefore);
    for (const entry of found.sort((a, b) => (a.path < b.path ? -1 : 1))) this.#surplus.push(entry);
  }

  /** Opens the last folder that waits; undefined where none does. */
  #next(waiting: WaitingFolders[]): Visit | undefined {
    const { report } = this.#deps;
    for (let group = waiting.at(-1); group !== undefined; group = waiting.at(-1)) {
      const name = group.names.pop() ?? "";
      if (group.names.length === 0) waiting.pop();
      const { depth, source } = group;
      const remote = { root: group.remote.root, path: childPath(group.remote.path, name) };
      try {
        const local = LocalFolder.inside(group.local, name);
        report.folders++;
        return visitOf({ remote, local, depth: depth + 1, source });
      } catch (error) {
        report.fail(remote.path, error);
      }
    }
    return undefined;
  }

  async #visit(visit: Visit, waiting: WaitingFolders[]): Promise<void> {
    const { report } = this.#deps;
    try {
      await this.#addFolder(visit, waiting);
    } catch (error) {
      if (isFinal(error)) throw error;
      report.fail(visit.remote.path, error);
    }
  }

  async #addFolder(visit: Visit, waiting: WaitingFolders[]): Promise<void> {
    const { cluster, report } = this.#deps;
    if (visit.source.isCutBefore === true) removeLeftFiles(visit.local.path);
    for await (const page of listPages(cluster, visit.remote, { patience: LONG })) {
      for (const attr of page) {
        const name = ownText(attr.name);
        const remote = { root: visit.remote.root, path: childPath(visit.remote.path, name) };
        try {
          const file = this.#look(visit, { attr, name, remote }, waiting);
          if (file !== undefined) await this.#addFile(file);
        } catch (error) {
          if (isFinal(error) || this.#pool.hasFailed) throw error;
          report.fail(remote.path, error);
        }
      }
    }
    if (visit.source.isMirror === true) this.#findSurplus(visit);
  }

  #findSurplus({ source, local, depth }: Visit): void {
    const others = local.others();
    if (depth === 0 && !local.hasEntries && others.length > 0) {
      this.#deps.report.skip(local.path, "nothing is on the cluster, so nothing is taken away for it");
      return;
    }
    const top = pathIn(source);
    for (const name of others) {
      // One more than the maximum shows that it is exceeded.
      if (this.#surplus.length > SURPLUS_MAX) return;
      this.#surplus.push({ top, path: join(local.path, name) });
    }
  }

  /** One entry of a listing: a file to fetch, or a folder to visit. */
  #look(visit: Visit, { attr, name, remote }: Found, waiting: WaitingFolders[]): FileJob | undefined {
    if (attr.kind === Kind.DIRECTORY) {
      if (visit.depth >= FOLDER_DEPTH_MAX) throw new ClientError("SERVER_BROKEN", "the folders do not end");
      const { inside } = visit;
      if (inside.names.push(visit.local.claim(name)) === 1) waiting.push(inside);
      return undefined;
    }
    if (attr.kind !== Kind.FILE) throw new ClientError("SERVER_BROKEN", "is neither a file nor a folder");
    if (attr.size > BigInt(FILE_MAX_BYTES)) {
      throw new ClientError("SERVER_BROKEN", "the server named an impossible size");
    }
    visit.local.claim(name);
    return { remote, folder: visit.local.path, name, ...contentOf(attr), sameness: visit.source.sameness };
  }

  async #addFile(job: FileJob): Promise<void> {
    const { cluster, meter, note, report } = this.#deps;
    meter.totalFiles++;
    meter.totalBytes += job.sizeBytes;
    const onBytes = (bytes: number): void => {
      meter.doneBytes += bytes;
    };
    const isLarge = job.sizeBytes > LARGE_FILE_BYTES;
    const transfer = async (): Promise<void> => {
      try {
        if (job.sameness !== undefined && (await isThere(job, job.sameness))) {
          meter.leaveOut(job.sizeBytes);
          report.unchanged++;
          return;
        }
        const fetch = (): Promise<void> =>
          job.sizeBytes < RESUMABLE_FROM_BYTES
            ? cluster.runAt(job.remote, LONG, (server) => fetchFile(server, job, onBytes))
            : downloadResumable({ cluster, note, onBytes }, job);
        await (isLarge ? fetch() : this.#window.run(job.sizeBytes, fetch));
        meter.doneFiles++;
      } catch (error) {
        if (isFinal(error)) throw error;
        report.fail(job.remote.path, error);
      }
    };
    const added = this.#pool.add(transfer, isLarge ? "large" : "small");
    if (added !== true) await added;
  }
}

function visitOf({ remote, local, depth, source }: Omit<Visit, "inside">): Visit {
  const { path, isFolding } = local;
  return {
    remote,
    local,
    depth,
    source,
    inside: { remote, local: { path, isFolding }, depth, source, names: [] },
  };
}

/** A copy: a text of a listing is a part of its page's text, and would keep all of it in memory. */
function ownText(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

function contentOf(attr: Attr): Pick<FileJob, "sizeBytes" | "etag" | "mtimeMs" | "crc32"> {
  const { crc32 } = attr;
  const etag = ownText(attr.etag);
  return { sizeBytes: Number(attr.size), mtimeMs: Number(attr.mtimeMs), etag, crc32 };
}

/** True when the file is in its place already. */
async function isThere(job: FileJob, sameness: Sameness): Promise<boolean> {
  const path = join(job.folder, job.name);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true) return false;
  const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
  return isSame({ path, sizeBytes, mtimeMs: toldTimeMs(mtimeMs), ctimeMs }, job, sameness);
}

/** Fetches one file into its place: a small one in one call, a larger one as a stream. */
async function fetchFile(server: Server, job: FileJob, onBytes: OnBytes): Promise<void> {
  if (job.sizeBytes <= SMALL_FILE_BYTES) {
    const whole = await readWholeFile(server, job.remote);
    // Undefined when the file has grown beyond one call since it was listed.
    if (whole !== undefined) {
      await writeSmallFile(job.folder, job.name, whole.data, Number(whole.attr.mtimeMs));
      onBytes(whole.data.length);
      return;
    }
  }
  const writer = await LocalFileWriter.create(job.folder, job.name);
  let received = 0;
  const count = (bytes: number): void => {
    received += bytes;
    onBytes(bytes);
  };
  try {
    const attr = await downloadFile(server, job.remote, (slice) => writer.write(slice), { onBytes: count });
    await writer.finish(Number(attr.mtimeMs));
  } catch (error) {
    // The download itself has set this to 0 where it took bytes back.
    onBytes(-received);
    await writer.discard();
    throw error;
  }
}

function pathIn(source: DownloadSource): string {
  return source.localName === "" ? source.localFolder : `${source.localFolder}/${source.localName}`;
}
