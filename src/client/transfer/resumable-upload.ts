// Sends a large file so that a cut (connection, restart, session, exit) costs a few chunks (D15).
import { type FileHandle, open, realpath } from "node:fs/promises";
import { formatBytes } from "#base/bytes.ts";
import { GroveError, isGroveError, UPLOAD_ENDING_CODES } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { type Cluster, LONG, type Server } from "#client/connection/cluster.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError, isClientError, localFailure } from "#client/terminal/client-error.ts";
import { PROGRESS_BYTES, UPLOAD_OFFSETS_TRIED, UPLOAD_STARTS_MAX } from "#client/terminal/limits.ts";
import { crc32 } from "#os/crc32.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { diskOf } from "./local-disk.ts";
import { isSameState, READ_FLAGS, settledState, stateOf, unchanged } from "./local-source.ts";
import { type OnBytes, readChunks, uploadChunks } from "./upload.ts";
import type { UploadMemory, UploadSource } from "./upload-memory.ts";

/** Dependencies of a resumable upload. */
export interface ResumableUploadDeps {
  readonly cluster: Cluster;
  readonly memory: UploadMemory;
  /** Tells people something above the progress bar. */
  readonly note: (text: string) => void;
  readonly onBytes: OnBytes;
}

/** Uploads one large file of this machine with its time of change. Rejects with GroveError or ClientError. */
export async function uploadResumable(
  deps: ResumableUploadDeps,
  localPath: string,
  target: RemotePath,
): Promise<void> {
  let handle: FileHandle;
  let path: string;
  try {
    handle = await open(localPath, READ_FLAGS);
    path = await realpath(localPath);
  } catch (error) {
    throw localFailure(error, localPath);
  }
  try {
    const disk = diskOf((await handle.stat({ bigint: true })).dev);
    const look = async (): Promise<UploadSource> => {
      return { path, disk, ...stateOf(await handle.stat({ bigint: true }), localPath) };
    };
    const chunks = (sizeBytes: number, fromBytes: number): AsyncIterable<Buffer> =>
      readChunks(handle, localPath, sizeBytes, fromBytes);
    await uploadFromSource(deps, { label: localPath, look, chunks }, target);
  } finally {
    await handle.close();
  }
}

/** A file that can be read again from any chunk on, of this machine or of another place. */
export interface ResumableSource {
  /** Its name for messages, as the user knows it. */
  readonly label: string;
  /** Its state now. */
  look(): Promise<UploadSource>;
  /** Its chunks of CHUNK_BYTES from a chunk's offset on, the last one shorter. */
  chunks(sizeBytes: number, fromBytes: number): AsyncIterable<Buffer>;
}

/** Uploads one large file of any source with its time of change. Rejects with GroveError or ClientError. */
export async function uploadFromSource(
  deps: ResumableUploadDeps,
  source: ResumableSource,
  target: RemotePath,
): Promise<void> {
  await new ResumableUpload(deps, source, target).run();
}

class ResumableUpload {
  readonly #deps: ResumableUploadDeps;
  readonly #local: ResumableSource;
  readonly #target: RemotePath;
  #starts = 0;
  /** About the bytes on the server, for messages: what it told, and what no socket holds back of those sent since. */
  #stagedBytes = 0;
  #uploadId: string | undefined;

  constructor(deps: ResumableUploadDeps, local: ResumableSource, target: RemotePath) {
    this.#deps = deps;
    this.#local = local;
    this.#target = target;
  }

  async run(): Promise<void> {
    const { cluster, memory } = this.#deps;
    const source = await settledState(() => this.#local.look(), this.#local.label);
    this.#uploadId = await memory.find(source, this.#target);
    try {
      await cluster.runAt(this.#target, LONG, (server) => this.#attempt(server, source));
      await memory.forget(source, this.#target);
    } catch (error) {
      await this.#tellOfEnd(source, error);
      throw error;
    }
  }

  async #attempt(server: Server, source: UploadSource): Promise<void> {
    for (let tries = 1; ; tries++) {
      const isKnown = this.#uploadId !== undefined;
      const offset = await this.#offset(server, source);
      if (offset === undefined) return;
      if (offset > 0 && isKnown) this.#tellOfOffset(offset, source);
      try {
        await this.#send(server, source, offset);
        return;
      } catch (error) {
        const refusal = await refusalOf(error, server.address);
        const isOffset = isGroveError(refusal, "OFFSET_MISMATCH") && tries < UPLOAD_OFFSETS_TRIED;
        if (!isOffset) throw error;
      }
    }
  }

  /**
   * The offset to resume at; undefined when the file has arrived after a lost answer. Begins the upload when
   * there is none.
   */
  async #offset(server: Server, source: UploadSource): Promise<number | undefined> {
    const { memory } = this.#deps;
    const { root, path } = this.#target;
    if (this.#uploadId !== undefined) {
      const uploadId = this.#uploadId;
      try {
        return Number((await server.files.getUpload({ root, uploadId }, server.unary)).offset);
      } catch (error) {
        if (!isGroveError(await refusalOf(error, server.address), "NO_SUCH_UPLOAD")) throw error;
      }
      this.#uploadId = undefined;
      await memory.forget(source, this.#target);
      if (await this.#hasArrived(server, source)) return undefined;
    }
    if (this.#starts >= UPLOAD_STARTS_MAX) {
      throw new ClientError("SERVER_BROKEN", `${path}: the server forgets the upload again and again`);
    }
    const begun = await server.files.beginUpload(
      { root, path, size: BigInt(source.sizeBytes), mtimeMs: BigInt(source.mtimeMs) },
      server.unary,
    );
    this.#starts++;
    this.#uploadId = begun.uploadId;
    await memory.keep(source, this.#target, begun.uploadId);
    return Number(begun.offset);
  }

  async #send(server: Server, source: UploadSource, offset: number): Promise<void> {
    const { label } = this.#local;
    const { onBytes } = this.#deps;
    if (offset > source.sizeBytes || (offset % CHUNK_BYTES !== 0 && offset !== source.sizeBytes)) {
      throw new ClientError("SERVER_BROKEN", `${label}: the server says that it has ${offset} bytes of it`);
    }
    this.#stagedBytes = offset;
    let sentBytes = 0;
    const count: OnBytes = (bytes) => {
      onBytes(bytes);
      sentBytes += bytes;
      // A moving stream means that the server answers: the patience begins anew.
      if (bytes <= 0 || sentBytes <= PROGRESS_BYTES) return;
      server.progressed();
      const arrived = offset + sentBytes - PROGRESS_BYTES;
      this.#stagedBytes = arrived - (arrived % CHUNK_BYTES);
    };
    onBytes(offset);
    try {
      const chunks = unchanged(this.#local.chunks(source.sizeBytes, offset), source.sizeBytes - offset, {
        path: label,
        isSame: async () => isSameState(source, await this.#local.look()),
      });
      const { sizeBytes, mtimeMs } = source;
      const resume = { uploadId: this.#uploadId ?? "", offset };
      await uploadChunks(server, chunks, { ...this.#target, sizeBytes, mtimeMs, resume }, count);
    } catch (error) {
      onBytes(-offset);
      throw error;
    }
  }

  /** The answer to a finished upload may be lost: size, time and checksum show that the file is there. */
  async #hasArrived(server: Server, source: UploadSource): Promise<boolean> {
    const { root, path } = this.#target;
    try {
      const attr = await server.files.getAttr({ root, path }, server.unary);
      if (attr.kind !== Kind.FILE || attr.size !== BigInt(source.sizeBytes)) return false;
      if (attr.mtimeMs !== BigInt(source.mtimeMs)) return false;
      let crc = 0;
      for await (const chunk of this.#local.chunks(source.sizeBytes, 0)) crc = crc32(chunk, crc);
      if (attr.crc32 !== crc) return false;
    } catch (error) {
      if (isGroveError(await refusalOf(error, server.address), "NO_SUCH_PATH")) return false;
      throw error;
    }
    this.#deps.onBytes(source.sizeBytes);
    return true;
  }

  #tellOfOffset(offset: number, { sizeBytes }: UploadSource): void {
    const { label } = this.#local;
    this.#deps.note(`${label}: going on at ${formatBytes(offset)} of ${formatBytes(sizeBytes)}`);
  }

  async #tellOfEnd(source: UploadSource, error: unknown): Promise<void> {
    const { memory, note } = this.#deps;
    const isOver =
      isGroveError(error, "NO_SUCH_UPLOAD", ...UPLOAD_ENDING_CODES) || isClientError(error, "LOCAL_FILE");
    if (isOver || this.#uploadId === undefined) {
      await memory.forget(source, this.#target);
      if (isClientError(error, "LOCAL_FILE")) await this.#drop();
      return;
    }
    if (isGroveError(error, "UPLOAD_TAKEN_OVER") || this.#stagedBytes === 0) return;
    note(
      `${this.#local.label}: about ${formatBytes(this.#stagedBytes)} of ${formatBytes(source.sizeBytes)} are on the ` +
        "server; the same command goes on from there within 24 hours",
    );
  }

  /** Drops an upload that will not be resumed, so that it does not take up room for a day. */
  async #drop(): Promise<void> {
    const uploadId = this.#uploadId;
    const { root } = this.#target;
    if (uploadId === undefined) return;
    const once = { isRepeatable: true, attempts: 1 };
    await this.#deps.cluster
      .run(root, once, (server) => server.files.abortUpload({ root, uploadId }, server.unary))
      .catch(() => undefined);
  }
}

/** True when a server takes no more unfinished uploads, or none at all: the file is then sent plainly. */
export function isWithoutResume(error: unknown): boolean {
  return (
    error instanceof GroveError && (error.code === "TOO_MANY_UPLOADS" || error.code === "NOT_IMPLEMENTED")
  );
}
