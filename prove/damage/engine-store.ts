// A shared engine with small and large files of known bytes, which can be damaged and restored.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { systemFraction } from "#base/random.ts";
import { openBareEngine } from "#prove/bare-engine.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { checkEngine } from "#storage/engine/engine-check.ts";
import type { OpenedEngine } from "#storage/engine/open-shared-storage.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import { type StoreSettings, storeSettings } from "#storage/object-store/store-settings.ts";
import { connectShared, type SharedAddress } from "#storage/shared/shared-connection.ts";
import { startStore, type TestStore } from "#testing/object-stores.ts";
import { type PostgresServer, startPostgres } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import { contentsOf, SMALL_BYTES, type StoreSize } from "./stored-sizes.ts";

const OWNER = "ada@example.com";
const SCHEMA = "grove_engine";
const LEASE_MS = 20_000;

/** One file. */
export interface EngineFile {
  readonly id: number;
  readonly name: string;
  readonly bytes: Buffer;
  /** Names of its chunks; none for a file whose bytes lie in PostgreSQL. */
  readonly chunks: readonly string[];
}

/** One database after the other, each a copy of the intact one, over one bucket. */
export class EngineDamageStore {
  readonly #server: PostgresServer;
  readonly #store: TestStore;
  readonly #folder: string;
  readonly #intact: string;
  readonly #objects = new Map<string, Buffer>();
  readonly #changed = new Set<string>();
  #files: readonly EngineFile[] = [];
  #database = "";
  #turns = 0;

  private constructor(server: PostgresServer, store: TestStore, folder: string, intact: string) {
    this.#server = server;
    this.#store = store;
    this.#folder = folder;
    this.#intact = intact;
    this.#database = intact;
  }

  /** Makes one, which ends with the campaign. */
  static async make(campaign: Campaign, size: StoreSize): Promise<EngineDamageStore> {
    const cleanUp = (end: () => Promise<void>): void => campaign.atEnd(end);
    const [server, store] = await Promise.all([startPostgres(cleanUp), startStore("versitygw", cleanUp)]);
    const folder = await campaign.folder("memory");
    const made = new EngineDamageStore(server, store, folder, await server.createDatabase());
    await made.#fill(size, campaign.random);
    return made;
  }

  get files(): readonly EngineFile[] {
    return this.#files;
  }

  /** The right bytes of a chunk. */
  bytesOf(name: string): Buffer {
    return this.#objects.get(name) ?? Buffer.alloc(0);
  }

  /** Writes an object behind the store's back, as a bad disk does. */
  async putObject(name: string, bytes: Buffer): Promise<void> {
    this.#changed.add(name);
    await writeFile(this.#pathOf(name), bytes);
  }

  async removeObject(name: string): Promise<void> {
    this.#changed.add(name);
    await rm(this.#pathOf(name));
  }

  /** Runs one statement on the rows; returns how many it has changed. */
  async change(text: string): Promise<number> {
    const client = await connectShared(this.#address);
    try {
      return (await client.query(text)).rowCount ?? 0;
    } finally {
      await client.end();
    }
  }

  /** Ids of the files that are marked as damaged. */
  async marked(): Promise<Set<number>> {
    const client = await connectShared(this.#address);
    try {
      const { rows } = await client.query(
        `SELECT id FROM inode WHERE (flags & 1) <> 0 UNION SELECT inode.id FROM damaged_chunk
         JOIN file_chunk USING (chunk_id) JOIN inode USING (content_id)`,
      );
      return new Set((rows as { id: number }[]).map(({ id }) => id));
    } finally {
      await client.end();
    }
  }

  /** Takes all marks away, as if nothing had been found. */
  async unmark(): Promise<void> {
    await this.change("UPDATE inode SET flags = flags & ~1 WHERE (flags & 1) <> 0");
    await this.change("DELETE FROM damaged_chunk");
  }

  /** Puts everything right again: the bucket's objects, and a fresh copy of the rows. */
  async restore(): Promise<void> {
    for (const name of this.#changed) await writeFile(this.#pathOf(name), this.bytesOf(name));
    this.#changed.clear();
    const before = this.#database;
    this.#database = `turn_${++this.#turns}`;
    await this.#server.sql("postgres", `CREATE DATABASE ${this.#database} TEMPLATE ${this.#intact}`);
    if (before !== this.#intact) await this.#server.sql("postgres", `DROP DATABASE ${before} WITH (FORCE)`);
  }

  /** Opens the engine as a new FileServer without any cache, which serves the root. */
  async open(): Promise<OpenedEngine> {
    const engine = await openBareEngine({
      directory: join(this.#folder, `n${this.#turns}`),
      database: [this.#address],
      store: this.#settings,
      leaseMs: LEASE_MS,
    });
    await until(async () => {
      const roots = await againWhenRowsCome(() => engine.storage.roots());
      return this.#files.length === 0 || roots.length > 0;
    }, "the root");
    return engine;
  }

  /** The differences that `fsck -list` finds, as one text. */
  async checked(): Promise<string> {
    const { differences } = await checkEngine({
      database: [this.#address],
      bucket: this.#settings,
      clock: systemClock,
      fraction: systemFraction,
    });
    return differences.join("\n");
  }

  async #fill(size: StoreSize, random: SeededRandom): Promise<void> {
    const { storage } = await this.open();
    const files: Omit<EngineFile, "chunks">[] = [];
    try {
      const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
      for (const bytes of contentsOf(size, random)) {
        files.push(await put(storage, directoryId, `f${files.length}`, bytes));
      }
    } finally {
      await storage.close();
    }
    const client = await connectShared(this.#address);
    const { rows } = await client.query(
      `SELECT inode.id, chunk.name FROM inode JOIN file_chunk USING (content_id) JOIN chunk ON chunk.id = chunk_id
       ORDER BY inode.id, position`,
    );
    await client.end();
    const named = rows as { id: number; name: string }[];
    this.#files = files.map((file) => ({
      ...file,
      chunks: named.flatMap(({ id, name }) => (id === file.id ? [name] : [])),
    }));
    for (const { name } of named) this.#objects.set(name, await readFile(this.#pathOf(name)));
    await mkdir(this.#folder, { recursive: true });
  }

  /** versitygw keeps each object as a file of the bucket's folder. */
  #pathOf(name: string): string {
    const { credentialsFile, bucket } = this.#store;
    return join(dirname(credentialsFile), "data", bucket, chunkKey("rig/", name));
  }

  get #settings(): StoreSettings {
    const { port, bucket, credentialsFile } = this.#store;
    const query = new URLSearchParams({ endpoint: `http://127.0.0.1:${port}`, credentials: credentialsFile });
    return storeSettings(`s3://${bucket}/rig?${query.toString()}`);
  }

  get #address(): SharedAddress {
    const { socketFolder: host, port } = this.#server;
    return { config: { host, port, user: "grove", database: this.#database }, schema: SCHEMA };
  }
}

async function put(
  storage: Storage,
  parentId: number,
  name: string,
  bytes: Buffer,
): Promise<Omit<EngineFile, "chunks">> {
  const change = { owner: OWNER, by: OWNER, accessVersion: undefined, parentId, name, mtimeMs: 0 };
  if (bytes.length <= SMALL_BYTES) {
    const { inode } = await storage.createFile({ ...change, data: bytes });
    return { id: inode.id, name, bytes };
  }
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: bytes.length });
  sink.beginMessage();
  for (let at = 0; at < bytes.length; at += 65_536) await sink.write(bytes.subarray(at, at + 65_536));
  sink.endMessage();
  const { inode } = await sink.commit({ ...change, onExists: "replace", ifMatch: undefined });
  return { id: inode.id, name, bytes };
}
