// An SFTP server as the source of an import, reached by this machine's own ssh, with its keys and known hosts.
import { type ChildProcess, spawn } from "node:child_process";
import { ClientError } from "#client/terminal/client-error.ts";
import { type SourceState, toldTimeMs } from "#client/transfer/local-source.ts";
import { chunked } from "./chunked.ts";
import {
  type ImportEntry,
  type ImportFile,
  type ImportSource,
  type ListedEntry,
  stateElsewhere,
  walkListings,
} from "./import-source.ts";
import type { SftpAttributes } from "./sftp-packets.ts";
import { SftpSession } from "./sftp-session.ts";

/** Where it is, and how ssh gets there. */
export interface SftpPlace {
  readonly host: string;
  readonly port: number | undefined;
  readonly user: string | undefined;
  /** Empty for the home folder there. */
  readonly path: string;
  readonly identityFile: string | undefined;
  readonly knownHostsFile: string | undefined;
}

/** Bytes of one read, and reads under way for one file: 2 MiB fill a line of 1 Gbit/s and 16 ms. */
const READ_BYTES = 65_536;
const READS_AHEAD = 32;
const KIND_MASK = 0o170000;
const KINDS = new Map<number, ListedEntry["kind"]>([
  [0o040000, "folder"],
  [0o100000, "file"],
  [0o120000, "link"],
]);

/** Reads over one connection of ssh. */
export class SftpSource implements ImportSource {
  readonly name: string;
  readonly #ssh: ChildProcess;
  readonly #session: SftpSession;
  readonly #top: Buffer;
  /** Paths are bytes there; addresses are their Latin-1 text. */
  readonly #at = (address: string): Buffer => Buffer.from(address, "latin1");

  private constructor(name: string, ssh: ChildProcess, session: SftpSession, top: Buffer) {
    this.name = name;
    this.#ssh = ssh;
    this.#session = session;
    this.#top = top;
  }

  /** Connects. ssh asks on the terminal for what it needs. Rejects with ClientError. */
  static async connect(place: SftpPlace, signal: AbortSignal): Promise<SftpSource> {
    const where = place.user === undefined ? place.host : `${place.user}@${place.host}`;
    const ssh = spawn("ssh", sshWords(place, where), { stdio: ["pipe", "pipe", "inherit"], signal });
    if (ssh.stdin === null || ssh.stdout === null) throw new TypeError("ssh has no pipes");
    const session = new SftpSession(ssh.stdout, ssh.stdin, where);
    ssh.once("error", (error: NodeJS.ErrnoException) => {
      session.fail(
        error.code === "ENOENT" ? "ssh is not installed on this machine" : "ssh could not be started",
      );
    });
    try {
      await session.start();
      const top = await session.realPath(place.path === "" ? "." : place.path);
      const port = place.port === undefined ? "" : `:${place.port}`;
      return new SftpSource(`sftp://${where}${port}${top.toString()}`, ssh, session, Buffer.from(top));
    } catch (error) {
      ssh.kill();
      throw error;
    }
  }

  entries(): AsyncIterable<ImportEntry> {
    return walkListings(this.#top.toString("latin1"), async (address) => {
      const path = this.#at(address);
      const entries = await this.#session.list(path, path.toString());
      return entries.map(({ name, attributes }): ListedEntry => {
        const child = Buffer.concat([path, address.endsWith("/") ? EMPTY : SLASH, name]);
        return {
          name: textOf(name),
          kind: KINDS.get((attributes.mode ?? 0) & KIND_MASK) ?? "other",
          address: child.toString("latin1"),
          ...factsOf(attributes),
        };
      });
    });
  }

  async look({ address }: ImportFile): Promise<SourceState> {
    const path = this.#at(address);
    return stateElsewhere(factsOf(await this.#session.stat(path, path.toString())));
  }

  chunks(file: ImportFile, fromBytes: number): AsyncIterable<Buffer> {
    return chunked(this.#pieces(file, fromBytes), file.sizeBytes - fromBytes, file.place);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#session.fail("the import has ended");
    this.#ssh.stdin?.end();
    this.#ssh.kill();
  }

  async *#pieces({ address, sizeBytes }: ImportFile, fromBytes: number): AsyncGenerator<Buffer> {
    const path = this.#at(address);
    const label = path.toString();
    const handle = await this.#session.open(path, label);
    try {
      const ahead: Promise<Buffer>[] = [];
      let asked = fromBytes;
      for (;;) {
        while (ahead.length < READS_AHEAD && asked < sizeBytes) {
          const length = Math.min(READ_BYTES, sizeBytes - asked);
          const piece = this.#readWhole(handle, asked, length, label);
          // The consumer may stop before this one is asked for.
          piece.catch(() => undefined);
          ahead.push(piece);
          asked += length;
        }
        const next = ahead.shift();
        if (next === undefined) return;
        yield await next;
      }
    } finally {
      await this.#session.close(handle);
    }
  }

  /** So many bytes, in as many reads as the server makes of it; fewer at the end of the file. */
  async #readWhole(handle: Buffer, offset: number, length: number, label: string): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let got = 0; got < length; ) {
      const piece = await this.#session.read(handle, offset + got, length - got, label);
      if (piece === undefined || piece.length === 0) break;
      pieces.push(piece);
      got += piece.length;
    }
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }
}

const EMPTY = Buffer.alloc(0);
const SLASH = Buffer.from("/");

function sshWords(place: SftpPlace, where: string): string[] {
  const { port, identityFile, knownHostsFile } = place;
  const words = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "-o", "ForwardAgent=no"];
  if (port !== undefined) words.push("-p", String(port));
  if (identityFile !== undefined) words.push("-i", identityFile, "-o", "IdentitiesOnly=yes");
  if (knownHostsFile !== undefined) words.push("-o", `UserKnownHostsFile="${knownHostsFile}"`);
  return [...words, "-s", "--", where, "sftp"];
}

function factsOf({
  sizeBytes,
  mtimeSeconds,
}: SftpAttributes): Pick<ImportFile, "sizeBytes" | "mtimeMs" | "version"> {
  const mtimeMs = mtimeSeconds === undefined ? 0 : toldTimeMs(mtimeSeconds * 1_000);
  return { sizeBytes: sizeBytes ?? 0, mtimeMs, version: "" };
}

function textOf(name: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(name);
  } catch {
    return undefined;
  }
}

/** True for words that ssh takes as a host or a user, and not as an option of its own. */
export function isSshWord(word: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._@-]*$/.test(word) || /^[0-9a-fA-F:]+$/.test(word);
}

/** The refusal of such a word. */
export function noSshWord(): ClientError {
  return new ClientError("USAGE", "the SFTP address has a host or user that ssh cannot take");
}
