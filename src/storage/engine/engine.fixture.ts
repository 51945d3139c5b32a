// Fixtures of the shared engine's tests: a database and a bucket, and processes that use both.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "#base/clock.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import type { FileContent } from "#storage/contract/file-content.ts";
import type { Inode } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import type { SharedAddress } from "#storage/shared/shared-connection.ts";
import type { EnginePlaces } from "#testing/engine-places.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import type { StoredQuota } from "./engine-rows.ts";
import { type OpenedEngine, openSharedStorage } from "./open-shared-storage.ts";

/** A database of a test's own, and a prefix in the bucket. */
export interface EnginePlace {
  readonly database: SharedAddress;
  readonly storeUrl: string;
}

/** Makes a place for engines. */
export async function enginePlace({ database: server, store }: EnginePlaces): Promise<EnginePlace> {
  const database = await server.createDatabase();
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${store.port}`,
    credentials: store.credentialsFile,
  });
  return {
    database: {
      config: { host: server.socketFolder, port: server.port, user: "grove", database },
      schema: "grove_test",
    },
    storeUrl: `s3://${store.bucket}/${database}?${query.toString()}`,
  };
}

/** A process, closed after the test. */
export async function openEngine(
  t: TestContext,
  place: EnginePlace,
  options: {
    readonly name?: string;
    readonly directory?: string;
    readonly leaseMs?: number;
    readonly clusterId?: string;
    readonly logger?: Logger;
    readonly takeQuotas?: (usernames: readonly string[], kept: readonly StoredQuota[]) => Promise<void>;
  } = {},
): Promise<OpenedEngine & { readonly directory: string }> {
  const { name = "n1", directory = join(temporaryDirectory(t), "data") } = options;
  const engine = await openSharedStorage({
    directory,
    database: [place.database],
    store: storeSettings(place.storeUrl),
    address: `${name}.example.net:50051`,
    reserveBytes: 0n,
    hasLocalRoom: () => true,
    takeQuotas: options.takeQuotas ?? (() => Promise.resolve()),
    clock: systemClock,
    random: systemRandom,
    fraction: systemFraction,
    logger: options.logger ?? silentLogger,
    leaseMs: options.leaseMs,
    clusterId: options.clusterId,
  });
  t.after(() => engine.storage.close());
  return { ...engine, directory };
}

/** The inode at a path that must exist. */
export function inodeAt(storage: Storage, owner: string, ...names: string[]): Promise<Inode> {
  return againWhenRowsCome(() => {
    const { chain, missing } = storage.resolve(owner, names);
    assert.deepEqual(missing, []);
    return chain[chain.length - 1] ?? chain[0];
  });
}

/** Reads a whole file. */
export async function readAll(storage: Storage, fileId: number): Promise<Buffer> {
  const content: FileContent = await againWhenRowsCome(() => storage.openFile(fileId));
  try {
    const blocks: Buffer[] = [];
    for (let at = 0; at < content.inode.sizeBytes; at += blocks.at(-1)?.length ?? 0) {
      blocks.push(Buffer.from(await content.readBlock(at)));
    }
    return Buffer.concat(blocks);
  } finally {
    content.close();
  }
}

/** Uploads bytes by the owner. */
export async function upload(
  storage: Storage,
  owner: string,
  parentId: number,
  name: string,
  bytes: Buffer,
): Promise<void> {
  const sink = storage.beginUpload({ owner, sizeBytes: bytes.length });
  sink.beginMessage();
  for (let at = 0; at < bytes.length; at += 65_536) await sink.write(bytes.subarray(at, at + 65_536));
  sink.endMessage();
  const by = { owner, by: owner, accessVersion: undefined };
  await sink.commit({ ...by, parentId, name, onExists: "replace", ifMatch: undefined, mtimeMs: 0 });
}
