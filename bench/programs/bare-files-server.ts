// A server on bare node:http2 that stores and sends files with checksums, and does nothing else.
import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { serverCertificate } from "#bench/certificates.ts";
import { serveTasks } from "#bench/tasks.ts";

const FILE_BYTES = 4_000_000;
const WRITE_BYTES = 1_048_576;
const READ_BYTES = 1_048_576;
/** Buffers between the disk and a stream. */
const READ_AHEAD = 4;
/** Gathered writes that may wait before the sender is stopped. */
const WAITING_WRITES = 4;
/** As large as the FileServer's; 16 MiB cost a tenth more, since more buffers live at once. */
const WINDOW_BYTES = 1_048_576;
const SESSION_WINDOW_BYTES = 64 * 1_048_576;

let folder = "";
const settings = { initialWindowSize: WINDOW_BYTES };
const certificate = serverCertificate();
const server: Http2Server =
  certificate === undefined ? createServer({ settings }) : createSecureServer({ settings, ...certificate });
server.on("session", (session) => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
server.on("stream", (stream: ServerHttp2Stream, headers) => {
  const answered = headers[":path"]?.endsWith("/DownloadFile") === true ? send(stream) : receive(stream);
  answered.catch((error: unknown) => stream.destroy(error instanceof Error ? error : undefined));
});

/** A write of gathered slices; the last of a file flushes and closes it. */
interface Write {
  readonly slices: Buffer[];
  readonly isLast: boolean;
}

/** Stores all bytes of a stream in files of 4,000,000 bytes, and answers their number. */
function receive(stream: ServerHttp2Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    const store = new FileStore(() => stream.resume(), reject);
    stream.on("data", (slice: Buffer) => {
      if (store.add(slice)) stream.pause();
    });
    stream.once("error", reject);
    stream.once("end", () => {
      store.end().then((bytes) => {
        stream.respond({ ":status": 200 });
        stream.end(String(bytes));
        resolve();
      }, reject);
    });
  });
}

class FileStore {
  readonly #roomMade: () => void;
  readonly #failed: (error: unknown) => void;
  #slices: Buffer[] = [];
  #gathered = 0;
  #filled = 0;
  #files = 0;
  #bytes = 0;
  #crc = 0;
  readonly #checksums: number[] = [];
  readonly #waiting: Write[] = [];
  #running: Promise<void> | undefined;
  readonly #flushes: Promise<void>[] = [];
  #file: FileHandle | undefined;

  constructor(roomMade: () => void, failed: (error: unknown) => void) {
    this.#roomMade = roomMade;
    this.#failed = failed;
  }

  /** True when so much waits to be written that no more should come. */
  add(slice: Buffer): boolean {
    this.#bytes += slice.length;
    for (let at = 0; at < slice.length; ) {
      const length = Math.min(slice.length - at, FILE_BYTES - this.#filled);
      const piece = length === slice.length ? slice : slice.subarray(at, at + length);
      at += length;
      this.#crc = crc32(piece, this.#crc);
      this.#slices.push(piece);
      this.#gathered += length;
      this.#filled += length;
      if (this.#filled === FILE_BYTES) this.#hand(true);
      else if (this.#gathered >= WRITE_BYTES) this.#hand(false);
    }
    return this.#waiting.length >= WAITING_WRITES;
  }

  async end(): Promise<number> {
    if (this.#filled > 0) this.#hand(true);
    await this.#running;
    await Promise.all(this.#flushes);
    return this.#bytes;
  }

  #hand(isLast: boolean): void {
    this.#waiting.push({ slices: this.#slices, isLast });
    this.#slices = [];
    this.#gathered = 0;
    if (isLast) {
      this.#checksums.push(this.#crc);
      this.#crc = 0;
      this.#filled = 0;
    }
    this.#running ??= this.#write().catch(this.#failed);
  }

  /** One write at a time: two on one file would wait for each other in the kernel. */
  async #write(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (this.#waiting.length === WAITING_WRITES - 1) this.#roomMade();
      this.#file ??= await open(join(folder, String(this.#files++)), "w");
      await this.#file.writev(next.slices);
      if (!next.isLast) continue;
      const file = this.#file;
      this.#file = undefined;
      this.#flushes.push(file.sync().then(() => file.close()));
    }
    this.#running = undefined;
  }
}

/** Sends all files one after the other; what is read ahead lies in buffers that are used again once sent. */
async function send(stream: ServerHttp2Stream): Promise<void> {
  stream.respond({ ":status": 200 });
  const names = (await readdir(folder)).toSorted((a, b) => Number(a) - Number(b));
  const free = Array.from({ length: READ_AHEAD }, () => Buffer.allocUnsafeSlow(READ_BYTES));
  let freed: (() => void) | undefined;
  for (const name of names) {
    const file = await open(join(folder, name), "r");
    for (let at = 0; at < FILE_BYTES; ) {
      while (free.length === 0) await new Promise<void>((resolve) => (freed = resolve));
      const buffer = free.pop()!;
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES, null);
      if (bytesRead === 0) {
        free.push(buffer);
        break;
      }
      at += bytesRead;
      const bytes = buffer.subarray(0, bytesRead);
      crc32(bytes);
      stream.write(bytes, () => {
        free.push(buffer);
        freed?.();
      });
    }
    await file.close();
  }
  stream.end();
}

serveTasks(
  {
    listen: async (path) => {
      folder = String(path);
      await mkdir(folder, { recursive: true });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return (server.address() as AddressInfo).port;
    },
    empty: async () => {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder);
      return null;
    },
  },
  () => {
    server.close();
  },
);
