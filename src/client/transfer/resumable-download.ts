// Fetches a large file by offset while its etag stays, so that a cut loses no arrived byte (D15).
import { stat } from "node:fs/promises";
import { formatBytes } from "#base/bytes.ts";
import { isGroveError } from "#base/errors.ts";
import { type Cluster, LONG, type Server } from "#client/connection/cluster.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError, isClientError } from "#client/terminal/client-error.ts";
import { DOWNLOAD_STARTS_MAX, PROGRESS_BYTES } from "#client/terminal/limits.ts";
import { downloadFile } from "./download.ts";
import { checksumOf } from "./local-checksum.ts";
import { LocalFileWriter } from "./local-file.ts";
import { claimPartial } from "./partial-file.ts";
import type { OnBytes } from "./upload.ts";

/** Dependencies of a resumable download. */
export interface ResumableDownloadDeps {
  readonly cluster: Cluster;
  /** Tells people something above the progress bar. */
  readonly note: (text: string) => void;
  readonly onBytes: OnBytes;
}

/** One large file of the cluster and its place on this machine. */
export interface DownloadJob {
  readonly remote: RemotePath;
  readonly folder: string;
  readonly name: string;
  /** The etag at planning; the file may have changed since. */
  readonly etag: string;
}

/** Fetches one file into its place, which it takes only when it is complete and its checksum is right. */
export async function downloadResumable(deps: ResumableDownloadDeps, job: DownloadJob): Promise<void> {
  const download = new ResumableDownload(deps, job);
  try {
    await deps.cluster.runAt(job.remote, LONG, (server) => download.attempt(server));
  } catch (error) {
    await download.tellOfEnd();
    throw error;
  }
}

class ResumableDownload {
  readonly #deps: ResumableDownloadDeps;
  readonly #job: DownloadJob;
  #etag: string;
  #partial: string | undefined;
  #starts = 0;

  constructor(deps: ResumableDownloadDeps, job: DownloadJob) {
    this.#deps = deps;
    this.#job = job;
    this.#etag = job.etag;
  }

  async attempt(server: Server): Promise<void> {
    for (;;) {
      try {
        await this.#fetch(server);
        return;
      } catch (error) {
        const refusal = await refusalOf(error, server.address);
        const hasChanged = isGroveError(refusal, "ETAG_MISMATCH");
        const isWrong = isClientError(refusal, "SERVER_BROKEN");
        if ((!hasChanged && !isWrong) || ++this.#starts >= DOWNLOAD_STARTS_MAX) throw error;
        // Both begin anew; a part of a file with another checksum is useless.
        const { root, path } = this.#job.remote;
        this.#etag = (await server.files.getAttr({ root, path }, server.unary)).etag;
      }
    }
  }

  /** Leaves the arrived part for the next run, and says so. */
  async tellOfEnd(): Promise<void> {
    if (this.#partial === undefined) return;
    const { size } = await stat(this.#partial).catch(() => ({ size: 0 }));
    if (size === 0) return;
    this.#deps.note(
      `${this.#job.remote.path}: ${formatBytes(size)} are in ${this.#partial}; the same command goes on from there`,
    );
  }

  async #fetch(server: Server): Promise<void> {
    const { remote, folder, name } = this.#job;
    this.#partial = claimPartial(folder, { remote, name, etag: this.#etag });
    const begun =
      this.#partial === undefined ? undefined : await LocalFileWriter.goOn(folder, name, this.#partial);
    if (begun === undefined) this.#partial = undefined;
    const writer = begun ?? (await LocalFileWriter.create(folder, name));
    const offset = writer.lengthBytes;
    let received = offset;
    const count: OnBytes = (bytes) => {
      received += bytes;
      this.#deps.onBytes(bytes);
      if (bytes > 0 && received > offset + PROGRESS_BYTES) server.progressed();
    };
    this.#deps.onBytes(offset);
    try {
      const crcBefore = offset === 0 ? 0 : await checksumOf(this.#partial ?? "", offset);
      if (offset > 0) this.#deps.note(`${remote.path}: going on at ${formatBytes(offset)}`);
      const attr = await downloadFile(server, remote, (slice) => writer.write(slice), {
        onBytes: count,
        range: { offset, length: 0 },
        ifMatch: this.#etag,
        crcBefore,
      });
      await writer.finish(Number(attr.mtimeMs));
    } catch (error) {
      // The download itself has set this to 0 where it took bytes back.
      this.#deps.onBytes(-received);
      const isTooLong = offset > 0 && isGroveError(await refusalOf(error, server.address), "BAD_ARGUMENT");
      if (this.#partial === undefined || isTooLong || isClientError(error, "SERVER_BROKEN")) {
        await writer.discard();
      } else await writer.leave();
      if (!isTooLong) throw error;
      throw new ClientError("SERVER_BROKEN", `${remote.path}: what was there of it is longer than the file`);
    }
  }
}
