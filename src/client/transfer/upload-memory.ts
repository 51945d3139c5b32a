// What this installation knows of uploads that it has not finished, so that another run of the same command goes on with them (D15).
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { isProcessAlive } from "#client/signin/process-lock.ts";
import { readStored, writeStored } from "#client/signin/stored-json.ts";
import { UPLOAD_MEMORY_MAX, UPLOAD_MEMORY_MS } from "#client/terminal/limits.ts";
import { removePrivateFile } from "#os/private-file.ts";
import type { SourceState } from "./local-source.ts";
import { removeOldFiles } from "./old-files.ts";

/** A local file as it was when its upload began. */
export interface UploadSource extends SourceState {
  /** Absolute path. */
  readonly path: string;
}

/** Files in the configuration folder, one for each source and target; they hold no secret, since an upload is its user's alone. */
export class UploadMemory {
  readonly #folder: string;
  #isTidied = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The id of the upload of this source to this target; undefined when there is none, the source has changed, or another process works on it. */
  async find(source: UploadSource, target: RemotePath): Promise<string | undefined> {
    const fields = await readStored(this.#path(source, target)).catch(() => undefined);
    const pid = fields?.integer("pid");
    if (pid !== undefined && pid !== process.pid && isProcessAlive(pid)) return undefined;
    const isSame =
      fields?.integer("size") === source.sizeBytes &&
      fields.text("mtime_ns") === String(source.mtimeNs) &&
      fields.text("ctime_ns") === String(source.ctimeNs);
    return isSame ? fields.text("upload_id") : undefined;
  }

  /** Remembers an upload as this process's own; where that cannot be, another run begins anew. */
  async keep(source: UploadSource, target: RemotePath, uploadId: string): Promise<void> {
    await this.#tidy();
    const kept = writeStored(this.#path(source, target), {
      upload_id: uploadId,
      source: source.path,
      size: source.sizeBytes,
      mtime_ns: String(source.mtimeNs),
      ctime_ns: String(source.ctimeNs),
      root: target.root,
      path: target.path,
      pid: process.pid,
    });
    await kept.catch(() => undefined);
  }

  /** Forgets one that has ended. */
  async forget(source: UploadSource, target: RemotePath): Promise<void> {
    await removePrivateFile(this.#path(source, target)).catch(() => undefined);
  }

  /** Once a run, removes what the servers have forgotten too. */
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
