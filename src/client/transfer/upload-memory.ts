// Records this installation's unfinished uploads, so that the same command resumes them (D15).
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { readStored, type StoredFields, writeStored } from "#client/signin/stored-json.ts";
import { UPLOAD_MEMORY_MAX, UPLOAD_MEMORY_MS } from "#client/terminal/limits.ts";
import { removePrivateFile } from "#os/private-file.ts";
import { isProcessAlive, ownMark, stateOfMarked } from "#os/process-alive.ts";
import { mayBeSameDisk } from "./local-disk.ts";
import { hasCoarseTimes, type SourceState } from "./local-source.ts";
import { removeOldFiles } from "./old-files.ts";

/** A local file as it was when its upload began. */
export interface UploadSource extends SourceState {
  /** Absolute path. */
  readonly path: string;
  /** The disk of a file of this machine, by a name that outlives its device number where there is one. */
  readonly disk?: string;
}

/**
 * Files in the configuration folder, one for each source and target. They hold no secret, since only its user
 * can use an upload.
 */
export class UploadMemory {
  readonly #folder: string;
  #isTidied = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * The id of the upload of this source to this target. Undefined when there is none, the source has changed,
   * or another process works on it.
   */
  async find(source: UploadSource, target: RemotePath): Promise<string | undefined> {
    const fields = await readStored(this.#path(source, target)).catch(() => undefined);
    if (fields === undefined || isHeld(fields)) return undefined;
    if (fields.integer("size") !== source.sizeBytes) return undefined;
    const isSame =
      fields.text("mtime_ns") === undefined
        ? fields.integer("mtime_ms") === source.mtimeMs && (await this.#isOlder(source, target))
        : fields.text("mtime_ns") === String(source.mtimeNs) &&
          fields.text("ctime_ns") === String(source.ctimeNs) &&
          (fields.text("version") ?? "") === (source.version ?? "");
    return isSame && isOnItsDisk(fields, source) ? fields.text("upload_id") : undefined;
  }

  /** Records of 0.1.0 lack the time of the source's last change of any kind: it has to be before them. */
  async #isOlder(source: UploadSource, target: RemotePath): Promise<boolean> {
    const record = await stat(this.#path(source, target), { bigint: true }).catch(() => undefined);
    return record !== undefined && source.ctimeNs < record.mtimeNs;
  }

  /** Records the upload as this process's own; without a record, another run begins anew. */
  async keep(source: UploadSource, target: RemotePath, uploadId: string): Promise<void> {
    await this.#tidy();
    const kept = writeStored(this.#path(source, target), {
      upload_id: uploadId,
      source: source.path,
      size: source.sizeBytes,
      mtime_ns: String(source.mtimeNs),
      ctime_ns: String(source.ctimeNs),
      version: source.version ?? "",
      disk: source.disk ?? "",
      root: target.root,
      path: target.path,
      process: ownMark(),
    });
    await kept.catch(() => undefined);
  }

  /** Forgets an ended upload. */
  async forget(source: UploadSource, target: RemotePath): Promise<void> {
    await removePrivateFile(this.#path(source, target)).catch(() => undefined);
  }

  /** Once a run, removes records of uploads that the servers have dropped too. */
  async #tidy(): Promise<void> {
    if (this.#isTidied) return;
    this.#isTidied = true;
    await removeOldFiles(this.#folder, { files: UPLOAD_MEMORY_MAX, ageMs: UPLOAD_MEMORY_MS });
  }

  #path(source: UploadSource, { root, path }: RemotePath): string {
    const key = createHash("sha256").update(`${source.path}\0${root}\0${path}`).digest("hex").slice(0, 32);
    return join(this.#folder, `upload-${key}.json`);
  }
}

/**
 * True while another process of this machine works on the upload. One of another machine may, which is not known:
 * the server lets only the later one go on.
 */
function isHeld(fields: StoredFields): boolean {
  const mark = fields.text("process");
  if (mark !== undefined) return stateOfMarked(mark) === "lives";
  // Records of 0.1.0 have the number alone.
  const pid = fields.integer("pid");
  return pid !== undefined && pid !== process.pid && isProcessAlive(pid);
}

/**
 * False where the path leads to a file of another disk by now. Exact times tell two files apart, also where a device
 * number has changed; a disk with coarse ones must be the same.
 */
function isOnItsDisk(fields: StoredFields, source: UploadSource): boolean {
  const disk = fields.text("disk");
  if (disk === undefined || source.disk === undefined) return true;
  return hasCoarseTimes(source) ? disk === source.disk : mayBeSameDisk(disk, source.disk);
}
