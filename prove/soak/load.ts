// One user at full load: every kind of operation, many broken off, and all files removed at the end.

import type { SeededRandom } from "#prove/seeded-random.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Files that a user keeps at most. */
const FILES_KEPT = 24;
const CHUNK_BYTES = 1_000_000;
const LARGE_MAX_BYTES = 9_000_000;
const SMALL_MAX_BYTES = 65_536;
/**
 * Refusals of a busy server, among them too many sign-ins from one address; any other refusal is a broken
 * promise.
 */
const BUSY: ReadonlySet<string> = new Set(["OVERLOADED", "STORE_UNAVAILABLE", "RATE_LIMITED"]);

/** Receives wrong answers. */
export interface LoadReport {
  acknowledged(kind: string): void;
  violation(text: string): void;
}

interface KnownFile {
  readonly path: string;
  readonly bytes: Buffer;
}

/** A user with a connection of their own. */
export class BusyUser {
  readonly #email: string;
  readonly #address: string;
  readonly #random: SeededRandom;
  readonly #report: LoadReport;
  /** Source of contents: making megabytes for each file would be load of the rig's own. */
  readonly #pool: Buffer;
  #channel: GrpcChannel;
  #metadata: Readonly<Record<string, string>> = {};
  #files: KnownFile[] = [];
  #made = 0;

  constructor(email: string, address: string, random: SeededRandom, report: LoadReport) {
    this.#email = email;
    this.#address = address;
    this.#random = random;
    this.#report = report;
    this.#pool = random.bytes(LARGE_MAX_BYTES);
    this.#channel = new GrpcChannel({ addresses: [address] });
  }

  get #client(): ReturnType<typeof createClient<typeof FileServer>> {
    return createClient(FileServer, this.#channel);
  }

  async signIn(): Promise<void> {
    const { sessionToken } = await this.#client.registerClient(
      { clientId: "soak", deviceName: "rig" },
      { metadata: { authorization: `Bearer mock-jwt.${this.#email}` }, waitForReady: true },
    );
    this.#metadata = { authorization: `Bearer ${sessionToken}` };
  }

  /** Works until the end; every operation is drawn at random. */
  async work(goesOn: () => boolean): Promise<void> {
    await this.signIn();
    while (goesOn()) await this.#once();
  }

  /** Removes everything for good, and signs out. */
  async leave(): Promise<void> {
    const { metadata } = { metadata: this.#metadata };
    for (;;) {
      const { entries } = await this.#client.listDir({ path: "/", pageSize: 1_000 }, { metadata });
      if (entries.length === 0) break;
      for (const { path } of entries) await this.#client.deleteFile({ path, recursive: true }, { metadata });
    }
    await this.#client.purgeTrash({}, { metadata });
    const { usedBytes, stagingBytes } = await this.#client.getQuota({}, { metadata });
    if (usedBytes !== 0n || stagingBytes !== 0n)
      this.#report.violation(
        `${this.#email} has removed everything and still pays for ${usedBytes} bytes, ${stagingBytes} staged`,
      );
    await this.#client.endSession({}, { metadata });
    this.close();
  }

  close(): void {
    this.#channel.close();
  }

  async #once(): Promise<void> {
    const kind = this.#random.pick(KINDS);
    try {
      await this.#do(kind);
      this.#report.acknowledged(kind);
    } catch (error) {
      const reason = error instanceof StatusError ? (error.metadata.get("svc-reason") ?? "") : "";
      if (BUSY.has(reason)) this.#report.acknowledged("refused as busy");
      else this.#report.violation(`${kind} by ${this.#email}: ${reason} ${String(error)}`);
    }
  }

  async #do(kind: Kind): Promise<void> {
    const { metadata } = { metadata: this.#metadata };
    const file = this.#files.length === 0 ? undefined : this.#random.pick(this.#files);
    if (kind === "small upload") return this.#upload(this.#content(SMALL_MAX_BYTES));
    if (kind === "large upload") return this.#upload(this.#content(LARGE_MAX_BYTES));
    if (kind === "aborted upload") return this.#abortUpload();
    if (kind === "begun upload") return this.#beginAndForget();
    if (kind === "sign-in") return this.signIn();
    if (kind === "new connection") {
      this.#channel.close();
      this.#channel = new GrpcChannel({ addresses: [this.#address] });
      return undefined;
    }
    if (kind === "listing") {
      await this.#client.listDir({ path: "/", pageSize: 100 }, { metadata });
      return undefined;
    }
    if (file === undefined) return undefined;
    if (kind === "download") return this.#download(file);
    if (kind === "aborted download") return this.#abortDownload(file);
    if (kind === "rename") {
      const path = this.#newPath();
      await this.#client.rename(
        { path: file.path, targetPath: path, onConflict: OnConflict.FAIL },
        { metadata },
      );
      this.#files = this.#files.map((each) => (each === file ? { ...file, path } : each));
      return undefined;
    }
    return this.#remove(file, kind === "trash");
  }

  #content(maxBytes: number): Buffer {
    const length = this.#random.between(1, maxBytes);
    const from = this.#random.below(this.#pool.length - length + 1);
    return this.#pool.subarray(from, from + length);
  }

  #newPath(): string {
    return `/f${this.#made++}`;
  }

  async #upload(bytes: Buffer): Promise<void> {
    const isOver = this.#files.length > 0 && this.#random.chance(0.3);
    const path = isOver ? this.#random.pick(this.#files).path : this.#newPath();
    await this.#client.uploadFile(parts(path, bytes, bytes.length), { metadata: this.#metadata });
    this.#files = [...this.#files.filter((file) => file.path !== path), { path, bytes }];
    while (this.#files.length > FILES_KEPT)
      await this.#remove(this.#files[0] as KnownFile, this.#random.chance(0.5));
  }

  /** Aborts an upload in the middle of a chunk, of a message, or before its first byte. */
  async #abortUpload(): Promise<void> {
    const bytes = this.#content(LARGE_MAX_BYTES);
    const stop = new AbortController();
    const sent = this.#random.below(bytes.length + 1);
    const broken = this.#client.uploadFile(parts(this.#newPath(), bytes, sent, stop), {
      metadata: this.#metadata,
      signal: stop.signal,
    });
    await broken.catch(() => undefined);
  }

  async #beginAndForget(): Promise<void> {
    const { metadata } = { metadata: this.#metadata };
    const bytes = this.#content(LARGE_MAX_BYTES);
    const size = BigInt(bytes.length);
    const { uploadId } = await this.#client.beginUpload({ path: this.#newPath(), size }, { metadata });
    const stop = new AbortController();
    const header = { uploadId, size, sizeKnown: true };
    await this.#client
      .uploadFile(parts("", bytes, this.#random.below(bytes.length), stop, header), {
        metadata,
        signal: stop.signal,
      })
      .catch(() => undefined);
    await this.#client.abortUpload({ uploadId }, { metadata });
  }

  async #download(file: KnownFile): Promise<void> {
    const got: Uint8Array[] = [];
    const replies = this.#client.downloadFile({ path: file.path }, { metadata: this.#metadata });
    for await (const { part } of replies) if (part.case === "chunk") got.push(part.value.data);
    if (Buffer.compare(Buffer.concat(got), file.bytes) !== 0)
      this.#report.violation(`${file.path} of ${this.#email} came back with other bytes`);
  }

  async #abortDownload(file: KnownFile): Promise<void> {
    const stop = new AbortController();
    const replies = this.#client.downloadFile(
      { path: file.path },
      { metadata: this.#metadata, signal: stop.signal },
    );
    let left = this.#random.below(3);
    try {
      for await (const _ of replies) if (left-- === 0) stop.abort();
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
  }

  async #remove(file: KnownFile, toTrash: boolean): Promise<void> {
    const { metadata } = { metadata: this.#metadata };
    this.#files = this.#files.filter((each) => each !== file);
    if (!toTrash) {
      await this.#client.deleteFile({ path: file.path }, { metadata });
      return;
    }
    await this.#client.trashFile({ path: file.path }, { metadata });
    if (this.#random.chance(0.2)) await this.#client.purgeTrash({}, { metadata });
  }
}

const KINDS = [
  "small upload",
  "small upload",
  "large upload",
  "large upload",
  "aborted upload",
  "aborted upload",
  "begun upload",
  "download",
  "download",
  "aborted download",
  "aborted download",
  "listing",
  "rename",
  "trash",
  "delete",
  "sign-in",
  "new connection",
] as const;
type Kind = (typeof KINDS)[number];

/** An upload that stops after its first `sent` bytes. */
async function* parts(
  path: string,
  bytes: Buffer,
  sent: number,
  stop?: AbortController,
  header: object = { size: BigInt(bytes.length), sizeKnown: true },
): AsyncGenerator<object> {
  yield { part: { case: "header", value: { path, ...header } } };
  for (let at = 0; at < sent; at += CHUNK_BYTES) {
    const data = bytes.subarray(at, Math.min(at + CHUNK_BYTES, sent));
    yield { part: { case: "chunk", value: { offset: BigInt(at), data } } };
  }
  // The bytes sent so far must arrive before the end does.
  if (stop !== undefined) {
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
  }
}
