// Receives one file and checks order, size, each chunk's checksum and the whole file's (decision D15).

import { crc32Combine } from "#base/crc32-combine.ts";
import { CHUNK_BYTES, FILE_MAX_BYTES, UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import type { Server } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { crc32 } from "#os/crc32.ts";
import type { SlicedMessage, SliceTaker } from "#wire/grpc/sliced.ts";
import { type Attr, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type DownloadResponseSchema, FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { OnBytes } from "./upload.ts";

/** A part of a file. */
export interface Range {
  readonly offset: number;
  /** 0 means to the end. */
  readonly length: number;
}

/**
 * Downloads a file, or a part of it, slice by slice; resolves with its attributes once everything was right.
 * Slices are not to be trusted before that. Rejects with StatusError, or with ClientError when the server
 * broke its promise.
 */
export async function downloadFile(
  server: Server,
  source: RemotePath,
  take: SliceTaker,
  options: {
    readonly onBytes?: OnBytes;
    readonly range?: Range;
    /** Etag that the file must have. */
    readonly ifMatch?: string;
    /** CRC-32 of all bytes before the range, which makes the checksum of the whole file known. */
    readonly crcBefore?: number;
    /** The same for each repeat of one request of a link's visitor. */
    readonly requestKey?: string;
  } = {},
): Promise<Attr> {
  const { range = { offset: 0, length: 0 }, onBytes, ifMatch = "", crcBefore, requestKey = "" } = options;
  const download = server.channel.slicedDownload(
    FileServer.method.downloadFile,
    "chunk.data",
    {
      root: source.root,
      path: source.path,
      offset: BigInt(range.offset),
      length: BigInt(range.length),
      ifMatch,
      requestKey,
    },
    server.stream,
  );
  const receiver = new Receiver(source, range, take, { onBytes, crcBefore });
  try {
    for (;;) {
      const next = download.next();
      const message = next instanceof Promise ? await next : next;
      if (message === null) return receiver.end();
      await receiver.take(message);
    }
  } catch (error) {
    download.cancel();
    receiver.giveUp();
    throw error;
  }
}

class Receiver {
  readonly #source: RemotePath;
  readonly #range: Range;
  readonly #take: SliceTaker;
  readonly #onBytes: OnBytes | undefined;
  #attr: Attr | undefined;
  #position: number;
  /** The end of the requested part. */
  #end = 0;
  #crc: number;
  /** True when the checksum of all bytes up to the end will be known. */
  readonly #isFromStart: boolean;

  constructor(
    source: RemotePath,
    range: Range,
    take: SliceTaker,
    options: { readonly onBytes: OnBytes | undefined; readonly crcBefore: number | undefined },
  ) {
    this.#source = source;
    this.#range = range;
    this.#take = take;
    this.#onBytes = options.onBytes;
    this.#isFromStart = range.offset === 0 || options.crcBefore !== undefined;
    this.#crc = options.crcBefore ?? 0;
    this.#position = range.offset;
  }

  async take(message: SlicedMessage<typeof DownloadResponseSchema>): Promise<void> {
    const { part } = message.message;
    if (this.#attr === undefined) {
      if (part.case !== "attr") throw this.#broken("sent no attributes first");
      this.#begin(part.value);
      return;
    }
    if (part.case !== "chunk") throw this.#broken("sent attributes twice");
    const { payloadBytes } = message;
    if (part.value.offset !== BigInt(this.#position)) throw this.#broken("sent chunks out of order");
    if (payloadBytes === 0 || payloadBytes > UPLOAD_MESSAGE_MAX_BYTES) {
      throw this.#broken("sent a chunk of a wrong size");
    }
    if (this.#position + payloadBytes > this.#end) throw this.#broken("sent more than the file has");
    await this.#takeChunk(message, part.value.crc32);
  }

  /** Ends the stream: everything must have arrived. */
  end(): Attr {
    const attr = this.#attr;
    if (attr === undefined) throw this.#broken("sent nothing");
    if (this.#position !== this.#end) throw this.#broken("sent less than the file has");
    const isWhole = this.#isFromStart && this.#end === Number(attr.size);
    if (isWhole && this.#crc !== attr.crc32) throw this.#damaged();
    return attr;
  }

  /** Subtracts the received bytes from the progress. */
  giveUp(): void {
    this.#onBytes?.(this.#range.offset - this.#position);
  }

  #begin(attr: Attr): void {
    if (attr.kind !== Kind.FILE) throw this.#broken("sent something that is no file");
    if (attr.size > BigInt(FILE_MAX_BYTES)) throw this.#broken("named an impossible size");
    const size = Number(attr.size);
    const { offset, length } = this.#range;
    this.#attr = attr;
    this.#end = Math.max(offset, length === 0 ? size : Math.min(size, offset + length));
  }

  async #takeChunk(
    message: SlicedMessage<typeof DownloadResponseSchema>,
    stated: number | undefined,
  ): Promise<void> {
    const { payload, payloadBytes } = message;
    let crc = 0;
    let received = 0;
    await payload.pour((slice) => {
      crc = crc32(slice, crc);
      received += slice.length;
      this.#position += slice.length;
      this.#onBytes?.(slice.length);
      return this.#take(slice);
    });
    if (received !== payloadBytes) throw this.#broken("sent a chunk of a wrong size");
    if (stated !== undefined && stated !== crc) throw this.#damaged();
    this.#crc = crc32Combine(this.#crc, crc, received);
  }

  #broken(what: string): ClientError {
    return new ClientError("SERVER_BROKEN", `${this.#source.path}: the server ${what}`);
  }

  #damaged(): ClientError {
    return new ClientError(
      "SERVER_BROKEN",
      `${this.#source.path}: the bytes do not match their checksum and were thrown away`,
      { todo: "Try again; if it stays so, tell the administrator of the cluster." },
    );
  }
}

/** Reads a whole file in one call, checked like a download; undefined when it exceeds one call. */
export async function readWholeFile(
  server: Server,
  source: RemotePath,
): Promise<{ attr: Attr; data: Uint8Array } | undefined> {
  const { attr, data } = await server.files.readFile(
    { root: source.root, path: source.path, offset: 0n, length: CHUNK_BYTES },
    server.unary,
  );
  const receiver = `${source.path}: the server`;
  if (attr !== undefined && attr.size > CHUNK_BYTES && data.length === CHUNK_BYTES) return undefined;
  if (attr === undefined || attr.kind !== Kind.FILE || attr.size !== BigInt(data.length)) {
    throw new ClientError("SERVER_BROKEN", `${receiver} sent more or less than the file has`);
  }
  if (crc32(data) !== attr.crc32) {
    throw new ClientError(
      "SERVER_BROKEN",
      `${source.path}: the bytes do not match their checksum and were thrown away`,
      { todo: "Try again; if it stays so, tell the administrator of the cluster." },
    );
  }
  return { attr, data };
}
