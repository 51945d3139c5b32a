// Tests of failing disks: a failed flush ends all changes for good, a full disk refuses one change at a time
//
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { CrashManifest, startLoad } from "./crash-manifest.fixture.ts";
import { onSmallDisk } from "./small-disk.fixture.ts";
import {
  assertSound,
  BY_OWNER,
  chunkFiles,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
const needsStrace = hasStrace ? {} : { skip: "strace is not installed" };

/** System call, index among the calls of one thread, and the only file whose calls count. */
const PLACES: readonly (readonly [string, number, string?])[] = [
  ["fdatasync", 2],
  ["fdatasync", 3],
  ["fsync", 7],
  ["fsync", 11],
  ["pwritev", 2],
  // The log's flush at an upload's commit: whether it is durable is unknown until the next start.
  ["fsync", 4, "inodes.db-wal"],
  ["fsync", 5, "inodes.db-wal"],
  ["fsync", 6, "inodes.db-wal"],
];

for (const [calls, place, onlyFile] of PLACES) {
  test(
    `EIO at call ${place} of ${calls} on ${onlyFile ?? "any file"} is final, is told, and is never tried again (A-06)`,
    needsStrace,
    async (context) => {
      const directory = temporaryDirectory(context);
      // Makes the first start's own flushes, which this test does not count.
      await (await openTestStorage(directory)).close();
      const manifest = new CrashManifest();
      const trace = join(temporaryDirectory(context), "trace");
      const inject = `inject=${calls}:error=EIO:when=${place}`;
      const strace = ["-y", "-o", trace, "-e", "trace=fdatasync,fsync,pwritev", "-e", inject];
      if (onlyFile !== undefined) strace.push("-P", join(directory, onlyFile));
      await startLoad(directory, manifest, {
        mode: "once",
        firstNumber: onlyFile === undefined ? 4 : 2,
        strace,
      }).exited;
      const lines = readFileSync(trace, "utf8").split("\n");
      const failed = lines.findIndex((line) => line.includes("(INJECTED)"));
      assert.ok(failed >= 0, "nothing was injected");
      const path = /<([^>]+)>/.exec(lines[failed] ?? "")?.[1] ?? "";
      assert.deepEqual(
        lines.slice(failed + 1).filter((line) => line.includes(`<${path}>`) && /sync/.test(line)),
        [],
      );
      const refused = manifest.lines.filter(({ event }) => event === "failed");
      assert.ok(refused.length > 0);
      assert.ok(
        refused.every(({ text }) => text === "STORAGE_FAILED"),
        JSON.stringify(refused),
      );
      assert.notEqual(manifest.lines.at(-1)?.text, "");
      assertSound(directory);
      await manifest.verify(directory);
      assertSound(directory);
    },
  );
}

/** The flush of a start's changes, and the one before they are brought into the database. */
for (const place of [1, 2]) {
  test(
    `EIO at flush ${place} of the log in a start after a crash ends that start, and is never tried again (A-06)`,
    needsStrace,
    async (context) => {
      const directory = temporaryDirectory(context);
      const manifest = new CrashManifest();
      const first = startLoad(directory, manifest, { mode: "load", firstNumber: 0 });
      await until(() => manifest.acknowledged > 5);
      first.child.kill("SIGKILL");
      await first.exited;
      const trace = join(temporaryDirectory(context), "trace");
      const inject = `inject=fsync:error=EIO:when=${place}`;
      const strace = ["-y", "-o", trace, "-e", "trace=fsync", "-e", inject];
      strace.push("-P", join(directory, "inodes.db-wal"));
      const start = startLoad(directory, new CrashManifest(), { mode: "once", firstNumber: 90, strace });
      await assert.rejects(start.exited, /disk I\/O error/);
      const flushes = readFileSync(trace, "utf8")
        .split("\n")
        .filter((line) => line.includes("fsync("));
      assert.equal(flushes.length, place, flushes.join("\n"));
      assertSound(directory);
      await manifest.verify(directory);
    },
  );
}

test("a full disk refuses what does not fit, keeps the rest, lets files go and then takes new ones (A-07)", async (context) => {
  await onSmallDisk(context, { mebibytes: 24 }, fillAndEmpty);
});

async function fillAndEmpty(directory: string): Promise<void> {
  const storage = await openTestStorage(directory, { ballastBytes: 2_097_152 });
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const kept: string[] = [];
  const isFull = async (put: (name: string) => Promise<unknown>, prefix: string): Promise<void> => {
    for (let index = 0; ; index++) {
      const name = `${prefix}${index}`;
      try {
        await put(name);
        kept.push(name);
      } catch (error) {
        assert.ok(refusal("DISK_RESERVE")(error));
        return;
      }
    }
  };
  await isFull((name) => upload(storage, { parentId, name, bytes: patterned(3_000_000) }), "large");
  const data = patterned(60_000);
  await isFull((name) => storage.createFile({ ...BY_OWNER, parentId, name, data, mtimeMs: 0 }), "small");
  assert.equal(storage.failure, undefined);
  assert.equal(inodeAt(storage).childCount, kept.length);
  for (const name of kept) {
    const bytes = await readAll(storage, inodeAt(storage, name).id);
    assert.ok(bytes.equals(name.startsWith("large") ? patterned(3_000_000) : data));
  }
  assert.equal(statSync(join(directory, "ballast"), { throwIfNoEntry: false }), undefined);
  // The ballast is for removals alone: repeated refused changes do not use it up.
  for (let index = 0; index < 60; index++) {
    const more = storage.createFile({ ...BY_OWNER, parentId, name: `more${index}`, data, mtimeMs: 0 });
    await assert.rejects(more, refusal("DISK_RESERVE"));
  }
  // Changes that make room still work, the way through the trash included (D14).
  for (const [at, name] of kept.filter((name) => name.startsWith("large")).entries()) {
    const inodeId = inodeAt(storage, name).id;
    if (at % 2 === 0) await storage.remove({ ...BY_OWNER, inodeId, recursive: false });
    else {
      const { item } = await storage.trash({ ...BY_OWNER, inodeId });
      const { freedBytes } = await storage.purgeTrash({ owner: OWNER, trashIds: [item.id] });
      assert.equal(freedBytes, 3_000_000);
    }
  }
  for (;;) {
    // The files go right after their rows.
    const again = await upload(storage, { parentId, name: "again", bytes: patterned(3_000_000) }).catch(
      (error: unknown) => error,
    );
    if (!(again instanceof GroveError)) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await storage.close();
  assertSound(directory);
}

test("a filesystem without inodes refuses a file of chunks and says why; small files need none, and it goes on once there are some", async (context) => {
  await onSmallDisk(context, { mebibytes: 64, inodes: 2_000 }, async (directory) => {
    const storage = await openTestStorage(directory, { ballastBytes: 2_097_152 });
    const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
    const filler = join(directory, "filler");
    mkdirSync(filler);
    for (let at = 0; statfsSync(directory).ffree > 0; at++) writeFileSync(join(filler, `${at}`), "");
    const bytes = patterned(3_000_000);
    await assert.rejects(upload(storage, { parentId, name: "large", bytes }), (error) => {
      assert.ok(refusal("DISK_RESERVE")(error));
      assert.match((error as GroveError).message, /no inodes left/);
      return true;
    });
    const data = patterned(60_000);
    await storage.createFile({ ...BY_OWNER, parentId, name: "small", data, mtimeMs: 0 });
    assert.equal(storage.failure, undefined);
    rmSync(filler, { recursive: true });
    await upload(storage, { parentId, name: "large", bytes });
    assert.ok((await readAll(storage, inodeAt(storage, "large").id)).equals(bytes));
    await storage.close();
    assertSound(directory);
  });
});

test("a stream of a resumable upload that a full disk ends says so, and what was staged before it stays (A-07, D15)", async (context) => {
  await onSmallDisk(context, { mebibytes: 24 }, fillByUpload);
});

async function fillByUpload(directory: string): Promise<void> {
  const storage = await openTestStorage(directory, { ballastBytes: 2_097_152 });
  await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const wanted = { path: "/f", onExists: "fail", ifMatch: undefined, mtimeMs: 0 } as const;
  await storage.uploads.create({ ...BY_OWNER, uploadId: "u1", sizeBytes: 64_000_000, ...wanted });
  const sink = storage.uploads.open("u1", () => undefined);
  const send = async (bytes: Buffer): Promise<void> => {
    sink.beginMessage();
    await sink.write(bytes);
    sink.endMessage();
    sink.acceptMessage();
  };
  const stagedBytes = (): number => storage.uploads.find("u1")?.stagedBytes ?? 0;
  try {
    await send(patterned(CHUNK_BYTES));
    await until(() => stagedBytes() === CHUNK_BYTES);
    const fill = async (): Promise<void> => {
      for (;;) await send(patterned(1_000_000));
    };
    await assert.rejects(fill(), refusal("DISK_RESERVE"));
    await assert.rejects(sink.suspend(), refusal("DISK_RESERVE"));
    assert.ok(stagedBytes() >= CHUNK_BYTES && stagedBytes() % CHUNK_BYTES === 0, String(stagedBytes()));
  } finally {
    await storage.close();
  }
  assertSound(directory);
}

test("the space of a removed folder comes back on a full disk, however little there was for its removal (A-07, D14)", async (context) => {
  await onSmallDisk(context, { mebibytes: 64 }, async (directory) => {
    await removeFolder(directory, 48 * 1_024);
  });
});

async function removeFolder(directory: string, freeBytes: number): Promise<void> {
  const ballastBytes = 2_097_152;
  const before = await openTestStorage(directory, { ballastBytes });
  const { directoryId } = before.root(OWNER) ?? (await before.createRoot({ owner: OWNER, rootId: "01ROOT" }));
  const { inode } = await before.createDirectory({ ...BY_OWNER, parentId: directoryId, name: "d" });
  const file = { parentId: inode.id, bytes: patterned(66_000) };
  for (let index = 0; index < 300; index++) await upload(before, { ...file, name: `f${index}` });
  // After a start the log is at its shortest: room for the removal, and none for its purge.
  await before.close();
  const storage = await openTestStorage(directory, { ballastBytes });
  const filler = join(directory, "filler");
  const { bavail, bsize } = statfsSync(directory);
  writeFileSync(filler, Buffer.alloc(bavail * bsize - freeBytes));
  try {
    await storage.remove({ ...BY_OWNER, inodeId: inode.id, recursive: true });
    await until(() => chunkFiles(directory).length === 0);
  } finally {
    rmSync(filler);
    await storage.close();
  }
  assertSound(directory);
}

test("a damaged database stops all changes when it is met, and the check says so (A-13)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  for (let index = 0; index < 200; index++) {
    await storage.createFile({
      ...BY_OWNER,
      parentId,
      name: `f${index}`,
      data: patterned(3_000),
      mtimeMs: 0,
    });
  }
  await storage.close();
  const path = join(directory, "inodes.db");
  const bytes = readFileSync(path);
  // Everything but the schema and the first pages of tables.
  bytes.fill(0xff, 60 * 4_096);
  writeFileSync(path, bytes);
  rmSync(`${path}-wal`, { force: true });
  const damaged = await openTestStorage(directory);
  const reasons: string[] = [];
  damaged.onFailure((reason) => reasons.push(reason));
  let failures = 0;
  for (let index = 0; index < 200; index++) {
    try {
      await readAll(damaged, inodeAt(damaged, `f${index}`).id);
    } catch (error) {
      assert.ok(refusal("CORRUPT")(error));
      failures++;
    }
  }
  assert.ok(failures > 0);
  assert.equal(reasons.length, 1);
  const change = damaged.createDirectory({ ...BY_OWNER, parentId, name: "d" });
  await assert.rejects(change, refusal("STORAGE_FAILED"));
  await damaged.close();
  assert.throws(() => assertSound(directory), /the database is damaged/);
});
