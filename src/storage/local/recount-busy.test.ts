// Tests over random changes that a concurrent recount reports all drift that exists and no other (D16, A-17).
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { StaleAccessError } from "#storage/contract/inode.ts";
import type { RecountPass } from "#storage/contract/recount-types.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { openReader } from "#storage/metadata/schema.ts";
import { newRecountPass } from "#storage/scrub/recount.ts";
import { RecountReader } from "#storage/scrub/recount-reader.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { assertSound, openTestStorage, patterned } from "./store.fixture.ts";

const OWNERS = ["ada@example.com", "bob@example.com"] as const;
/** So few rows that a snapshot ends, or is held over changes, at every turn. */
const SLICE_ROWS = 2;

/** Random numbers from which a change of existing nodes is made. */
type Draw = readonly [kind: number, owner: number, node: number, other: number, size: number];
const draw: fc.Arbitrary<Draw> = fc.tuple(fc.nat(11), fc.nat(1), fc.nat(), fc.nat(), fc.nat(4));
const SIZES = [0, 1, 1_000, 70_000, 300_000] as const;

/** All possible targets in a root, read from the database. */
interface Present {
  readonly directories: readonly number[];
  readonly inodes: readonly number[];
  readonly files: readonly number[];
  readonly trash: readonly string[];
}

function present(db: DatabaseSync, number: number): Present {
  const all = db
    .prepare("SELECT id, kind, parent_id AS parent FROM inode WHERE id / 4294967296 = ? ORDER BY id")
    .all(number) as { id: number; kind: number; parent: number | null }[];
  const trash = db.prepare("SELECT id FROM trash WHERE root_number = ?").all(number) as { id: string }[];
  return {
    directories: all.filter(({ kind }) => kind === 1).map(({ id }) => id),
    inodes: all.filter(({ parent }) => parent !== null).map(({ id }) => id),
    files: all.filter(({ kind }) => kind === 0).map(({ id }) => id),
    trash: trash.map(({ id }) => id),
  };
}

/** Makes one change; a refusal counts as an answer. */
async function change(
  storage: Storage,
  db: DatabaseSync,
  [kind, who, node, other, size]: Draw,
): Promise<void> {
  const owner = OWNERS[who] ?? OWNERS[0];
  const { directories, inodes, files, trash } = present(db, who + 1);
  const accessVersion = storage.root(owner)?.accessVersion ?? 0;
  const by = { owner, by: owner, accessVersion };
  const parentId = directories[node % directories.length] ?? 0;
  const inodeId = inodes[other % Math.max(1, inodes.length)] ?? 0;
  const name = `n${node % 7}`;
  const bytes = patterned(SIZES[size] ?? 0, other);
  const trashId = trash[other % Math.max(1, trash.length)] ?? "none";
  const onConflict = size > 2 ? "replace" : "rename";
  const changes: readonly (() => Promise<unknown>)[] = [
    () => storage.createDirectory({ ...by, parentId, name }),
    () => storage.createFile({ ...by, parentId, name, data: bytes.subarray(0, 1_000), mtimeMs: 0 }),
    () =>
      uploaded(
        storage,
        owner,
        { ...by, parentId, name, onExists: "replace", ifMatch: undefined, mtimeMs: 0 },
        bytes,
      ),
    () => storage.rename({ ...by, inodeId, parentId, name, onConflict }),
    () =>
      storage.copy({
        target: () => ({ ...by, sourceId: inodeId, parentId, name, onConflict }),
        by: owner,
        maxBytes: 2 ** 40,
        maxInodes: 2 ** 40,
        mayGoOn: () => undefined,
      }),
    () =>
      storage.copy({
        target: () => ({ ...by, sourceId: parentId, parentId: directories[0] ?? 0, name, onConflict }),
        by: owner,
        maxBytes: 2 ** 40,
        maxInodes: 2 ** 40,
        mayGoOn: () => undefined,
      }),
    () => storage.trash({ ...by, inodeId }),
    () => storage.restore({ ...by, trashId, names: undefined, onConflict }),
    () => storage.purgeTrash({ owner, trashIds: [trashId] }),
    () => storage.remove({ ...by, inodeId, recursive: true }),
    () =>
      storage.writeRange({
        ...by,
        fileId: files[other % Math.max(1, files.length)] ?? 0,
        offset: size * 50_000,
        data: bytes,
        ifMatch: undefined,
      }),
    () => staged(storage, owner, `u${other % 3}`),
  ];
  await changes[kind]?.().catch((error: unknown) => {
    if (!(error instanceof GroveError) && !(error instanceof StaleAccessError)) throw error;
  });
}

async function uploaded(
  storage: Storage,
  owner: string,
  target: Parameters<ReturnType<Storage["beginUpload"]>["commit"]>[0],
  bytes: Buffer,
): Promise<void> {
  const sink = storage.beginUpload({ owner, sizeBytes: undefined });
  try {
    sink.beginMessage();
    await sink.write(bytes);
    sink.endMessage();
    await sink.commit(target);
  } catch (error) {
    await sink.abort();
    throw error;
  }
}

/** Begins an upload and stages a chunk of it; drops an existing one. */
async function staged(storage: Storage, owner: string, upload: string): Promise<void> {
  const uploadId = `${owner} ${upload}`;
  if (storage.uploads.find(uploadId) !== undefined) {
    await storage.uploads.drop(uploadId);
    return;
  }
  const accessVersion = storage.root(owner)?.accessVersion ?? 0;
  const more = { path: "/x", onExists: "replace", ifMatch: undefined, mtimeMs: 7 } as const;
  const sizeBytes = 2 * CHUNK_BYTES;
  await storage.uploads.create({ owner, by: owner, accessVersion, uploadId, sizeBytes, ...more });
  const sink = storage.uploads.open(uploadId, () => undefined);
  sink.beginMessage();
  await sink.write(patterned(CHUNK_BYTES));
  sink.endMessage();
  sink.acceptMessage();
  await sink.suspend();
}

const FIRST = newRecountPass(0);

/** One pass, with changes between its steps, some of them while it holds a snapshot. */
async function passBeside(path: string, changes: () => Promise<void>): Promise<RecountPass> {
  const db = openReader(path);
  try {
    let pass = FIRST;
    for (const step of new RecountReader(db, FIRST, SLICE_ROWS).steps()) {
      ({ pass } = step);
      await changes();
    }
    return pass;
  } finally {
    db.close();
  }
}

async function prepared(directory: string): Promise<Storage> {
  const storage = await openTestStorage(directory);
  for (const [index, owner] of OWNERS.entries()) await storage.createRoot({ owner, rootId: `0${index}ROOT` });
  return storage;
}

test("beside any changes of two roots no recount finds drift, whenever its snapshots come (D16)", async (context) => {
  const run = fc.asyncProperty(
    fc.array(draw, { minLength: 10, maxLength: 30 }),
    fc.array(fc.array(draw, { maxLength: 3 }), { minLength: 10, maxLength: 40 }),
    async (first, between) => {
      const directory = temporaryDirectory(context);
      const storage = await prepared(directory);
      const path = join(directory, "inodes.db");
      const db = new DatabaseSync(path, { readOnly: true });
      for (const each of first) await change(storage, db, each);
      const turns = between[Symbol.iterator]();
      let steps = 0;
      const pass = await passBeside(path, async () => {
        steps++;
        // Concurrent: several share one transaction, with slices of a copy between them.
        await Promise.all((turns.next().value ?? []).map((each: Draw) => change(storage, db, each)));
      });
      db.close();
      await storage.close();
      assert.deepEqual(pass.drift, FIRST.drift);
      assert.equal(pass.roots, OWNERS.length);
      assert.ok(steps > OWNERS.length);
      assertSound(directory);
      rmSync(directory, { recursive: true });
    },
  );
  await fc.assert(run, { numRuns: 20, endOnFailure: true });
});

test("drift that is there is found beside any changes elsewhere, to the byte (A-17)", async (context) => {
  const run = fc.asyncProperty(
    fc.array(draw, { minLength: 5, maxLength: 20 }),
    fc.array(fc.array(draw, { maxLength: 3 }), { minLength: 10, maxLength: 40 }),
    fc.constantFrom("live_bytes", "trash_bytes", "staging_bytes"),
    fc.integer({ min: 1, max: 1_000 }),
    async (first, between, column, bytes) => {
      const directory = temporaryDirectory(context);
      const before = await prepared(directory);
      await before.close();
      const path = join(directory, "inodes.db");
      const planting = new DatabaseSync(path, { timeout: 60_000 });
      planting.exec(`UPDATE root SET ${column} = ${column} + ${bytes} WHERE number = 2`);
      planting.close();
      const storage = await openTestStorage(directory);
      const db = new DatabaseSync(path, { readOnly: true });
      for (const each of first) await change(storage, db, each);
      const turns = between[Symbol.iterator]();
      const pass = await passBeside(path, async () => {
        await Promise.all((turns.next().value ?? []).map((each: Draw) => change(storage, db, each)));
      });
      db.close();
      await storage.close();
      assert.deepEqual([pass.drift.bytes, pass.drift.counters], [bytes, 1]);
      rmSync(directory, { recursive: true });
    },
  );
  await fc.assert(run, { numRuns: 10, endOnFailure: true });
});
