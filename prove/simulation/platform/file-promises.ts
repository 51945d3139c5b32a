// Stands for node:fs/promises, on the synchronous calls: all happens in this thread and in one order.
import * as real from "node:fs";
import { simulation } from "#prove/simulation/scheduler.ts";
import { closeNow, isGhost, openNow, requireRoom } from "./files.ts";

export { constants } from "node:fs/promises";

/** Makes the call at once and settles at the end of this turn; promises of a dead process never settle. */
function later<T>(call: () => T): Promise<T> {
  if (isGhost()) return new Promise(() => undefined);
  let settle: (resolve: (value: T) => void, reject: (error: unknown) => void) => void;
  try {
    const value = call();
    settle = (resolve) => resolve(value);
  } catch (error) {
    settle = (_, reject) => reject(error);
  }
  return new Promise((resolve, reject) => simulation().immediate(() => settle(resolve, reject)));
}

type Content = string | Uint8Array;
type Encoding = Parameters<typeof real.readFileSync>[1];

/** An open file. */
export class FileHandle {
  readonly fd: number;

  constructor(descriptor: number) {
    this.fd = descriptor;
  }

  chmod(mode: number): Promise<void> {
    return later(() => real.fchmodSync(this.fd, mode));
  }

  close(): Promise<void> {
    return later(() => closeNow(this.fd));
  }

  datasync(): Promise<void> {
    return later(() => undefined);
  }

  sync(): Promise<void> {
    return later(() => undefined);
  }

  stat(): Promise<real.Stats> {
    return later(() => real.fstatSync(this.fd));
  }

  truncate(length = 0): Promise<void> {
    return later(() => real.ftruncateSync(this.fd, length));
  }

  read(
    buffer: Uint8Array,
    offset = 0,
    length: number = buffer.length - offset,
    position: number | null = null,
  ): Promise<{ bytesRead: number; buffer: Uint8Array }> {
    return later(() => ({ bytesRead: real.readSync(this.fd, buffer, offset, length, position), buffer }));
  }

  readFile(options: Encoding = {}): Promise<string | Buffer> {
    return later(() => real.readFileSync(this.fd, options));
  }

  write(
    data: Content,
    offset?: number,
    length?: number,
    position?: number | null,
  ): Promise<{ bytesWritten: number }> {
    return later(() => {
      requireRoom("write");
      const bytes = Buffer.from(data as Uint8Array);
      return { bytesWritten: real.writeSync(this.fd, bytes, offset ?? 0, length ?? null, position ?? null) };
    });
  }

  writeFile(data: Content): Promise<void> {
    return later(() => {
      requireRoom("write");
      real.writeFileSync(this.fd, data);
    });
  }

  appendFile(data: Content): Promise<void> {
    return this.writeFile(data);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export const open = (path: string, flags?: string | number, mode?: number): Promise<FileHandle> =>
  later(() => new FileHandle(openNow(path, flags, mode)));
export const readFile = (path: string, options: Encoding = {}): Promise<string | Buffer> =>
  later(() => real.readFileSync(path, options));
export const writeFile = (path: string, data: Content, options?: real.WriteFileOptions): Promise<void> =>
  later(() => {
    requireRoom("write");
    real.writeFileSync(path, data, options);
  });
export const copyFile = (from: string, to: string, mode?: number): Promise<void> =>
  later(() => {
    requireRoom("copy");
    real.copyFileSync(from, to, mode);
  });
export const mkdir = (path: string, options?: real.MakeDirectoryOptions): Promise<string | undefined> =>
  later(() => real.mkdirSync(path, options));
export const rename = (from: string, to: string): Promise<void> => later(() => real.renameSync(from, to));
export const link = (from: string, to: string): Promise<void> => later(() => real.linkSync(from, to));
export const rm = (path: string, options?: real.RmOptions): Promise<void> =>
  later(() => real.rmSync(path, options));
export const unlink = (path: string): Promise<void> => later(() => real.unlinkSync(path));
export const readdir = (path: string, options?: object): Promise<unknown> =>
  later(() => real.readdirSync(path, options as { withFileTypes: true }));
export const stat = (path: string, options?: object): Promise<unknown> =>
  later(() => real.statSync(path, options as { bigint: true }));
export const lstat = (path: string): Promise<real.Stats> => later(() => real.lstatSync(path));
export const statfs = (path: string, options?: object): Promise<unknown> =>
  later(() => real.statfsSync(path, options as { bigint: true }));
export const truncate = (path: string, length?: number): Promise<void> =>
  later(() => real.truncateSync(path, length));
export const lchown = (path: string, uid: number, gid: number): Promise<void> =>
  later(() => real.lchownSync(path, uid, gid));
export const chmod = (path: string, mode: number): Promise<void> => later(() => real.chmodSync(path, mode));
