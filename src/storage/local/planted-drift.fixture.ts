// What the recounts of both engines must find: counters planted wrong in a store with something of everything.
import assert from "node:assert/strict";
import { CHUNK_BYTES } from "#base/limits.ts";
import type { Drift } from "#storage/contract/recount-types.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { BY_OWNER, OWNER, patterned, upload } from "./store.fixture.ts";

/** Nothing found. */
export const NONE: Drift = {
  bytes: 0,
  counters: 0,
  directoryBytes: 0,
  liveBytes: 0,
  trashBytes: 0,
  stagingBytes: 0,
};

/** Two roots with folders, files, trash and an unfinished upload. */
export async function fillForRecount(storage: Storage): Promise<void> {
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await storage.createRoot({ owner: "bob@example.com", rootId: "02ROOT" });
  const { inode: a } = await storage.createDirectory({ ...BY_OWNER, parentId: directoryId, name: "a" });
  const { inode: b } = await storage.createDirectory({ ...BY_OWNER, parentId: a.id, name: "b" });
  const { inode: old } = await storage.createDirectory({ ...BY_OWNER, parentId: a.id, name: "old" });
  await upload(storage, { parentId: b.id, name: "small", bytes: patterned(1_000) });
  await upload(storage, { parentId: b.id, name: "large", bytes: patterned(700_000) });
  await upload(storage, { parentId: old.id, name: "binned", bytes: patterned(5_000) });
  await storage.trash({ ...BY_OWNER, inodeId: old.id });
  const rest = { path: "/f", onExists: "replace", ifMatch: undefined, mtimeMs: 7 } as const;
  await storage.uploads.create({ ...BY_OWNER, uploadId: "u1", sizeBytes: CHUNK_BYTES + 1, ...rest });
  const sink = storage.uploads.open("u1", () => undefined);
  sink.beginMessage();
  await sink.write(patterned(CHUNK_BYTES));
  sink.endMessage();
  sink.acceptMessage();
  await sink.suspend();
  const root = await againWhenRowsCome(() => storage.root(OWNER));
  assert.equal(root?.usage.stagingBytes, CHUNK_BYTES);
}

const named = (name: string): string => `WHERE name = '${name}'`;

/** Statements that make a counter wrong, and what is found then. */
export const PLANTED: Readonly<Record<string, readonly [sql: string, drift: Partial<Drift>]>> = {
  "a file's size": [
    `UPDATE inode SET size = size + 7 ${named("large")}`,
    { bytes: 7, counters: 1, directoryBytes: 7 },
  ],
  "a file's size in the trash": [
    `UPDATE inode SET size = size - 7 ${named("binned")}`,
    { bytes: 7, counters: 1, directoryBytes: 7 },
  ],
  "a directory's size": [
    `UPDATE inode SET size = size + 7 ${named("b")}`,
    { bytes: 7, counters: 2, directoryBytes: 14 },
  ],
  "the size of a root's directory": [
    "UPDATE inode SET size = size + 7 WHERE id = (SELECT directory_id FROM root WHERE number = 1)",
    { bytes: 7, counters: 2, directoryBytes: 7, liveBytes: 7 },
  ],
  "a root's bytes": [
    "UPDATE root SET live_bytes = live_bytes + 7 WHERE number = 1",
    { bytes: 7, counters: 1, liveBytes: 7 },
  ],
  "the bytes of a root without a file": [
    "UPDATE root SET live_bytes = live_bytes + 7 WHERE number = 2",
    { bytes: 7, counters: 1, liveBytes: 7 },
  ],
  "a root's trash": [
    "UPDATE root SET trash_bytes = trash_bytes - 7 WHERE number = 1",
    { bytes: 7, counters: 1, trashBytes: 7 },
  ],
  "a root's staging": [
    "UPDATE root SET staging_bytes = staging_bytes + 7 WHERE number = 1",
    { bytes: 7, counters: 1, stagingBytes: 7 },
  ],
  "an upload's staging": [
    "UPDATE upload SET staged_bytes = staged_bytes + 7",
    { bytes: 7, counters: 2, stagingBytes: 14 },
  ],
  "a root's files": ["UPDATE root SET file_count = file_count + 7 WHERE number = 1", { counters: 1 }],
  "a root's grants": ["UPDATE root SET grant_count = 7 WHERE number = 1", { counters: 1 }],
  "a directory's entries": [`UPDATE inode SET child_count = 9 ${named("b")}`, { counters: 1 }],
  "a directory's inodes": [`UPDATE inode SET tree_inodes = tree_inodes + 1 ${named("b")}`, { counters: 2 }],
  "the inodes of a root's directory": [
    "UPDATE inode SET tree_inodes = tree_inodes + 1 WHERE id = (SELECT directory_id FROM root WHERE number = 1)",
    { counters: 2 },
  ],
  "a root's inodes": ["UPDATE root SET live_inodes = live_inodes + 7 WHERE number = 1", { counters: 1 }],
  "the inodes in a root's trash": [
    "UPDATE root SET trash_inodes = trash_inodes - 1 WHERE number = 1",
    { counters: 1 },
  ],
  "a directory's levels": [`UPDATE inode SET height = height + 1 ${named("b")}`, { counters: 2 }],
  "the levels of a directory in the trash": [
    "UPDATE inode SET height = 0 WHERE id = (SELECT inode_id FROM trash)",
    { counters: 1 },
  ],
  "a directory's files": [`UPDATE inode SET tree_files = tree_files + 1 ${named("b")}`, { counters: 2 }],
  "two of them": [
    `UPDATE root SET live_bytes = live_bytes + 7, trash_bytes = trash_bytes + 5 WHERE number = 1`,
    { bytes: 12, counters: 2, liveBytes: 7, trashBytes: 5 },
  ],
};
