// A session of SFTP version 3 over two streams: requests by number, several at once.
import type { Readable, Writable } from "node:stream";
import { systemClock } from "#base/clock.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import {
  PacketCutter,
  PacketReader,
  PacketWriter,
  SFTP,
  SFTP_STATUS,
  type SftpAttributes,
} from "./sftp-packets.ts";

/** An entry of a listing. */
export interface SftpEntry {
  readonly name: Buffer;
  readonly attributes: SftpAttributes;
}

interface Reply {
  readonly type: number;
  readonly reader: PacketReader;
}

/** Entries of one folder, and bytes of their names; more are an error in words rather than all memory. */
const FOLDER_ENTRIES_MAX = 1_000_000;
const FOLDER_NAMES_MAX_BYTES = 268_435_456;
/** Answers of a listing without any entry. */
const EMPTY_ANSWERS_MAX = 100;
/** Longest name: more than any filesystem has. */
const NAME_MAX_BYTES = 4_096;
/** Longest handle, by the protocol. */
const HANDLE_MAX_BYTES = 256;
/** Longest silence of a server that owes an answer. */
const SILENCE_MS = 120_000;
/** Pflags of an open for reading. */
const READ_ONLY = 1;

/** Every method rejects with ClientError. */
export class SftpSession {
  readonly #output: Writable;
  readonly #where: string;
  readonly #waiting = new Map<number, PromiseWithResolvers<Reply>>();
  readonly #cutter = new PacketCutter();
  readonly #version = Promise.withResolvers<void>();
  #next = 1;
  #endsSilence: (() => void) | undefined;
  #failure: ClientError | undefined;

  /** `where` names the server in errors. */
  constructor(input: Readable, output: Writable, where: string) {
    this.#output = output;
    this.#where = where;
    this.#version.promise.catch(() => undefined);
    input.on("data", (piece: Buffer) => this.#take(piece));
    input.once("close", () => this.fail("the connection has ended"));
    output.on("error", () => this.fail("the connection has ended"));
  }

  /** Agrees on the version. */
  async start(): Promise<void> {
    this.#output.write(new PacketWriter().uint32(3).packet(SFTP.init));
    await this.#version.promise;
  }

  /** Ends every request that waits, and refuses later ones. */
  fail(why: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = new ClientError("SOURCE_FAILED", `${this.#where}: ${why}`);
    this.#endsSilence?.();
    this.#version.reject(this.#failure);
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
  }

  /** The absolute form of a path. */
  async realPath(path: string): Promise<Buffer> {
    const { reader } = await this.#expect(SFTP.name, SFTP.realpath, path, (writer) => writer.text(path));
    return this.#parsed(() => (reader.uint32() < 1 ? undefined : reader.bytes()));
  }

  /** All entries of a folder but itself and the one above. */
  async list(path: Buffer, label: string): Promise<SftpEntry[]> {
    const opened = await this.#expect(SFTP.handle, SFTP.opendir, label, (writer) => writer.text(path));
    const handle = this.#handleIn(opened.reader);
    const entries: SftpEntry[] = [];
    let [named, namesBytes, emptyAnswers] = [0, 0, 0];
    try {
      for (;;) {
        const reply = await this.#ask(SFTP.readdir, (writer) => writer.text(handle));
        if (reply.type === SFTP.status) {
          if (this.#codeIn(reply.reader) === SFTP_STATUS.eof) return entries;
          throw this.#refused(label, SFTP_STATUS.ok);
        }
        if (reply.type !== SFTP.name) throw this.#broken();
        const some = this.#parsed(() => entriesIn(reply.reader));
        if (some.length === 0 && ++emptyAnswers > EMPTY_ANSWERS_MAX) throw this.#broken();
        // A server that names nothing but the folder itself would never end either.
        named += some.length;
        for (const entry of some) {
          namesBytes += entry.name.length;
          if (!entry.name.equals(DOT) && !entry.name.equals(DOT_DOT)) entries.push(entry);
        }
        if (named > FOLDER_ENTRIES_MAX || namesBytes > FOLDER_NAMES_MAX_BYTES) {
          throw new ClientError("SOURCE_FAILED", `${label} has more than ${FOLDER_ENTRIES_MAX} entries`);
        }
      }
    } finally {
      await this.#close(handle);
    }
  }

  /** Attributes of what a path leads to. */
  async stat(path: Buffer, label: string): Promise<SftpAttributes> {
    const { reader } = await this.#expect(SFTP.attrs, SFTP.stat, label, (writer) => writer.text(path));
    return this.#parsed(() => reader.attributes());
  }

  /** Opens a file for reading; release it by `close`. */
  async open(path: Buffer, label: string): Promise<Buffer> {
    const { reader } = await this.#expect(SFTP.handle, SFTP.open, label, (writer) =>
      writer.text(path).uint32(READ_ONLY).uint32(0),
    );
    return this.#handleIn(reader);
  }

  /** Bytes from an offset on, perhaps fewer than asked for; undefined at the end. */
  async read(handle: Buffer, offset: number, length: number, label: string): Promise<Buffer | undefined> {
    const { type, reader } = await this.#ask(SFTP.read, (writer) =>
      writer.text(handle).uint64(offset).uint32(length),
    );
    if (type === SFTP.data) return this.#parsed(() => withinLength(reader.bytes(), length));
    if (type !== SFTP.status) throw this.#broken();
    const code = this.#codeIn(reader);
    if (code === SFTP_STATUS.eof) return undefined;
    throw this.#refused(label, code);
  }

  /** Closes a file. Never rejects. */
  async close(handle: Buffer): Promise<void> {
    await this.#close(handle);
  }

  async #close(handle: Buffer): Promise<void> {
    await this.#ask(SFTP.close, (writer) => writer.text(handle)).catch(() => undefined);
  }

  async #expect(
    reply: number,
    request: number,
    label: string,
    write: (writer: PacketWriter) => PacketWriter,
  ): Promise<Reply> {
    const answer = await this.#ask(request, write);
    if (answer.type === reply) return answer;
    if (answer.type === SFTP.status) throw this.#refused(label, this.#codeIn(answer.reader));
    throw this.#broken();
  }

  async #ask(request: number, write: (writer: PacketWriter) => PacketWriter): Promise<Reply> {
    if (this.#failure !== undefined) throw this.#failure;
    const id = this.#next;
    this.#next = (this.#next + 1) >>> 0;
    const answer = Promise.withResolvers<Reply>();
    if (this.#waiting.size === 0) this.#awaitAnswer();
    this.#waiting.set(id, answer);
    this.#output.write(write(new PacketWriter().uint32(id)).packet(request));
    return answer.promise;
  }

  #take(piece: Buffer): void {
    if (this.#failure !== undefined) return;
    this.#awaitAnswer();
    try {
      for (const { type, body } of this.#cutter.take(piece)) {
        const reader = new PacketReader(body);
        const id = reader.uint32();
        if (type === SFTP.version) {
          if (id < 3) throw new RangeError("version");
          this.#version.resolve();
          continue;
        }
        this.#waiting.get(id)?.resolve({ type, reader });
        this.#waiting.delete(id);
      }
      if (this.#waiting.size === 0) this.#endsSilence?.();
    } catch {
      this.fail("what it sends is not SFTP; does a program write something at sign-in there?");
    }
  }

  #handleIn(reader: PacketReader): Buffer {
    return this.#parsed(() => Buffer.from(withinLength(reader.bytes(), HANDLE_MAX_BYTES)));
  }

  #codeIn(reader: PacketReader): number {
    return this.#parsed(() => reader.uint32());
  }

  /** What a packet says; one that ends too soon, or says what cannot be, is the server's failure in words. */
  #parsed<T>(read: () => T | undefined): T {
    try {
      const found = read();
      if (found !== undefined) return found;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
    throw this.#broken();
  }

  #awaitAnswer(): void {
    this.#endsSilence?.();
    this.#endsSilence = systemClock.after(SILENCE_MS, () => this.fail("no answer in two minutes"));
  }

  #refused(label: string, code: number): ClientError {
    if (code === SFTP_STATUS.noSuchFile) {
      return new ClientError(
        "LOCAL_NOT_FOUND",
        `${label}: there is no such file or folder on ${this.#where}`,
        {
          todo: "Check the path.",
        },
      );
    }
    if (code === SFTP_STATUS.permissionDenied) {
      return new ClientError("LOCAL_DENIED", `${label}: ${this.#where} does not let you read it`, {
        todo: "Ask for the right to read it there.",
      });
    }
    return new ClientError("SOURCE_FAILED", `${label}: ${this.#where} refused it (status ${code})`);
  }

  #broken(): ClientError {
    return new ClientError("SOURCE_FAILED", `${this.#where} answers what is not SFTP`);
  }
}

function entriesIn(reader: PacketReader): SftpEntry[] {
  const entries: SftpEntry[] = [];
  for (let left = reader.uint32(); left > 0; left--) {
    const name = Buffer.from(withinLength(reader.bytes(), NAME_MAX_BYTES));
    reader.bytes();
    entries.push({ name, attributes: reader.attributes() });
  }
  return entries;
}

function withinLength(bytes: Buffer, max: number): Buffer {
  if (bytes.length <= max) return bytes;
  throw new RangeError("more bytes than there can be");
}

const DOT = Buffer.from(".");
const DOT_DOT = Buffer.from("..");
