// Fixtures of storage tests: a temporary store, a root in it, and short ways to put and read bytes.
import assert from "node:assert/strict";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext } from "node:test";
import { type Clock, systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Change, ChangeContext, Inode, InodeId, Usage } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { makeDirectory, temporaryDirectory } from "#testing/temporary-folder.ts";
import { openStorage } from "./open-storage.ts";

export const OWNER = "ada@example.com";

/** Changes by the owner of an unshared root. */
export const BY_OWNER: ChangeContext = { owner: OWNER, by: OWNER, accessVersion: 1 };

/** A root's usage: 0 except for the given fields. */
export function usageOf(named: Partial<Usage>): Usage {
  return {
    liveBytes: 0,
    trashBytes: 0,
    stagingBytes: 0,
    fileCount: 0,
    liveInodes: 0,
    trashInodes: 0,
    ...named,
  };
}

/** Opens storage without ballast. */
export function openTestStorage(
  directory: string,
  options: { clock?: Clock; logger?: Logger; ballastBytes?: number } = {},
): Promise<Storage> {
  const { clock = systemClock, logger = silentLogger, ballastBytes = 0 } = options;
  return openStorage({ directory, clock, random: systemRandom, logger, ballastBytes });
}

/**
 * Storage in a fresh directory with one root; closed after the test, and checked unless the test opts out.
 */
export async function freshStorage(
  context: TestContext,
  options: { clock?: Clock; logger?: Logger; isCheckedAfterwards?: boolean } = {},
): Promise<{ storage: Storage; directory: string; rootDirectoryId: InodeId }> {
  const directory = makeDirectory();
  const storage = await openTestStorage(directory, options);
  const root = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  context.after(async () => {
    await storage.close();
    if (options.isCheckedAfterwards !== false) assertSound(directory);
    rmSync(directory, { recursive: true, force: true });
  });
  return { storage, directory, rootDirectoryId: root.directoryId };
}

/**
 * Fills a data directory at the first call and checks it; each test of the file gets a copy. Storage that opens
 * starts threads, which takes longer than a copy.
 */
export function copiesOf(
  fill: (storage: Storage) => Promise<void>,
): (context: TestContext) => Promise<string> {
  let made: Promise<string> | undefined;
  const make = async (): Promise<string> => {
    const directory = makeDirectory();
    const storage = await openTestStorage(directory);
    await fill(storage);
    await storage.close();
    assertSound(directory);
    return directory;
  };
  after(async () => {
    if (made !== undefined) rmSync(await made, { recursive: true, force: true });
  });
  return async (context) => {
    made ??= make();
    const copy = temporaryDirectory(context);
    cpSync(await made, copy, { recursive: true, preserveTimestamps: true });
    return copy;
  };
}

/** Fails when a deep check finds anything. */
export function assertSound(directory: string): void {
  const report = checkStorage(directory, { repair: false, deep: true });
  assert.deepEqual(report.differences, []);
}

/** Uploads bytes in slices. */
export async function upload(
  storage: Storage,
  target: { parentId: InodeId; name: string; bytes: Buffer; sliceBytes?: number; ifMatch?: string },
): Promise<Change> {
  const { parentId, name, bytes, sliceBytes = 65_536 } = target;
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
  try {
    sink.beginMessage();
    for (let at = 0; at < bytes.length; at += sliceBytes) {
      await sink.write(bytes.subarray(at, at + sliceBytes));
    }
    sink.endMessage();
    const ifMatch = target.ifMatch;
    return await sink.commit({ ...BY_OWNER, parentId, name, onExists: "replace", ifMatch, mtimeMs: 0 });
  } catch (error) {
    await sink.abort();
    throw error;
  }
}

/** Reads a whole file block by block. */
export async function readAll(storage: Pick<Storage, "openFile">, fileId: InodeId): Promise<Buffer> {
  const content = storage.openFile(fileId);
  try {
    const blocks: Buffer[] = [];
    for (let at = 0; at < content.inode.sizeBytes; at += blocks.at(-1)?.length ?? 0) {
      blocks.push(await content.readBlock(at));
    }
    return Buffer.concat(blocks);
  } finally {
    content.close();
  }
}

/** Bytes that differ by position, the same for the same seed. */
export function patterned(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = (seed * 2_654_435_761 + 12_345) >>> 0;
  for (let at = 0; at < length; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    if (at + 4 <= length) bytes.writeUInt32LE(state, at);
    else for (let rest = at; rest < length; rest++) bytes[rest] = state >>> (8 * (rest - at));
  }
  return bytes;
}

/** The inode at a path that must exist. */
export function inodeAt(storage: Storage, ...names: string[]): Inode {
  const { chain, missing } = storage.resolve(OWNER, names);
  assert.deepEqual(missing, []);
  return chain[chain.length - 1] ?? chain[0];
}

/** For assert.rejects and assert.throws: a refusal with this code. */
export function refusal(code: GroveError["code"]): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof GroveError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  };
}

/** Rows that a statement returns or changes, on a second connection. */
export function query(directory: string, sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(join(directory, "inodes.db"), { timeout: 5_000 });
  const rows = db.prepare(sql).all();
  db.close();
  return rows;
}

/** Paths of all chunk files. */
export function chunkFiles(directory: string): string[] {
  return readdirSync(join(directory, "chunks"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
