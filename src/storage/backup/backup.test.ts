// Tests of backups: complete, incremental, refused when incomplete, restorable, and safe from the node's
// removals.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import type { Storage } from "#storage/contract/storage.ts";
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
} from "#storage/local/store.fixture.ts";
import { until } from "#testing/until.ts";
import { type Lab, lab, make } from "./backup.fixture.ts";
import { type RestoreReport, restoreBackup } from "./backup-restore.ts";
import { listBackups, pruneBackups, verifyBackups } from "./backup-verify.ts";

function restore({ folder }: Pick<Lab, "folder">, target: string, id?: string): Promise<RestoreReport> {
  const progress = (): void => undefined;
  return restoreBackup({ folder, id, target, clock: systemClock, random: systemRandom, progress });
}

function verify({ folder }: Lab): ReturnType<typeof verifyBackups> {
  return verifyBackups(folder, { id: undefined, progress: () => undefined });
}

/** Opens a restored directory, which must be sound, and closes it after the test. */
async function served(context: TestContext, directory: string): Promise<Storage> {
  assertSound(directory);
  const storage = await openTestStorage(directory);
  context.after(() => storage.close());
  return storage;
}

for (const copies of [false, true]) {
  test(`a backup ${copies ? "of copies" : "of links"} of a served directory restores to the same files, trash and all`, async (context) => {
    const here = await lab(context);
    const { inode } = await upload(here.storage, {
      parentId: here.parentId,
      name: "binned",
      bytes: patterned(300_000, 2),
    });
    await here.storage.trash({ ...BY_OWNER, inodeId: inode.id });
    mkdirSync(join(here.directory, "audit"));
    writeFileSync(join(here.directory, "audit", "0000000000000001.log"), "line\n");
    writeFileSync(join(here.directory, "quota_config.json"), "{}");
    const report = await make(here, { copies });
    assert.deepEqual(
      [report.newChunks, report.newBytes, report.linkedChunks],
      [2, 1_000_000, copies ? 0 : 2],
    );
    assert.equal(verify(here).problemCount, 0);
    const target = join(here.folder, "..", "restored");
    const { dataId, problems, damagedFiles } = await restore(here, target);
    assert.deepEqual([problems, damagedFiles], [[], 0]);
    const again = await served(context, target);
    assert.equal(again.dataId, dataId);
    assert.notEqual(dataId, here.storage.dataId);
    assert.ok((await readAll(again, inodeAt(again, "large").id)).equals(patterned(700_000)));
    assert.ok((await readAll(again, inodeAt(again, "small").id)).equals(patterned(1_000)));
    assert.equal(again.root(OWNER)?.usage.trashBytes, 300_000);
    assert.equal(readFileSync(join(target, "audit", "0000000000000001.log"), "utf8"), "line\n");
    assert.equal(readFileSync(join(target, "quota_config.json"), "utf8"), "{}");
    // Served files are separate from their backup.
    for (const path of chunkFiles(target)) truncateSync(path, 0);
    assert.equal(verify(here).problemCount, 0);
    assert.ok((await readAll(here.storage, inodeAt(here.storage, "large").id)).equals(patterned(700_000)));
  });
}

test("what the MetaServer was told of shares after a backup counts as older than what is restored (M-03)", async (context) => {
  const here = await lab(context);
  const { inode } = await here.storage.createDirectory({
    ...BY_OWNER,
    parentId: here.parentId,
    name: "docs",
  });
  const grant = { owner: OWNER, by: OWNER, accessVersion: undefined, inodeId: inode.id };
  await here.storage.shares.grant({ ...grant, username: "bob@example.com" });
  await make(here);
  await here.storage.shares.revoke({ ...grant, username: "bob@example.com" });
  await here.storage.shares.grant({ ...grant, username: "carol@example.com" });
  const target = join(here.folder, "..", "restored");
  await restore(here, target);
  const again = await served(context, target);
  assert.deepEqual(again.shares.ofRoot(OWNER), [{ path: "/docs", username: "bob@example.com" }]);
  assert.ok((again.root(OWNER)?.accessVersion ?? 0) > (here.storage.root(OWNER)?.accessVersion ?? 0));
});

test("a second backup brings only what is new, each is whole without the other, and a prune takes what only the old ones need", async (context) => {
  const here = await lab(context);
  const first = await make(here);
  await upload(here.storage, { parentId: here.parentId, name: "more", bytes: patterned(200_000, 3) });
  await here.storage.remove({
    ...BY_OWNER,
    inodeId: inodeAt(here.storage, "large").id,
    recursive: false,
  });
  const second = await make(here);
  assert.ok(second.id > first.id);
  assert.deepEqual([second.newChunks, second.newBytes], [1, 200_000]);
  const old = await served(context, await restored(here, "first", first.id));
  assert.ok((await readAll(old, inodeAt(old, "large").id)).equals(patterned(700_000)));
  assert.deepEqual(pruneBackups(here.folder, 1), {
    kept: [second.id],
    removed: [first.id],
    removedChunks: 1,
  });
  const { backups, problemCount, unfinished } = verify(here);
  assert.deepEqual([backups.map(({ id }) => id), problemCount, unfinished], [[second.id], 0, 0]);
  const young = await served(context, await restored(here, "second"));
  assert.ok((await readAll(young, inodeAt(young, "more").id)).equals(patterned(200_000, 3)));
  assert.throws(() => inodeAt(young, "large"));
});

async function restored(here: Lab, name: string, id?: string): Promise<string> {
  const target = join(here.folder, "..", name);
  await restore(here, target, id);
  return target;
}

test("everything acknowledged before a backup begins is in it, while others write, replace and remove", async (context) => {
  const here = await lab(context);
  const { storage, parentId } = here;
  const over = new AbortController();
  const acknowledged: string[] = [];
  const load = (async () => {
    for (let index = 0; !over.signal.aborted; index++) {
      await upload(storage, { parentId, name: `kept-${index}`, bytes: patterned(70_000, index) });
      acknowledged.push(`kept-${index}`);
      await upload(storage, { parentId, name: "turn", bytes: patterned(80_000, index) });
      if (index % 3 === 2) {
        const { id: inodeId } = inodeAt(storage, "turn");
        await storage.remove({ ...BY_OWNER, inodeId, recursive: false });
      }
    }
  })();
  for (let round = 0; round < 3; round++) {
    const before = acknowledged.length;
    await until(() => acknowledged.length >= before + 3);
    const expected = [...acknowledged];
    await make(here);
    assert.equal(verify(here).problemCount, 0);
    const again = await served(context, await restored(here, `round-${round}`));
    for (const [index, name] of expected.entries()) {
      assert.ok((await readAll(again, inodeAt(again, name).id)).equals(patterned(70_000, index)), name);
    }
  }
  over.abort();
  await load;
});

test("no chunk file is unlinked while a backup holds its lease, and all are when its process dies", async (context) => {
  const here = await lab(context);
  const holder = fileURLToPath(new URL("./lease-holder.fixture.ts", import.meta.url));
  const child = spawn(process.execPath, [holder, here.directory], { stdio: ["ignore", "pipe", "inherit"] });
  context.after(() => child.kill("SIGKILL"));
  await new Promise((resolve) => child.stdout.once("data", resolve));
  const [path = ""] = chunkFiles(here.directory);
  await here.storage.remove({ ...BY_OWNER, inodeId: inodeAt(here.storage, "large").id, recursive: false });
  // Other changes go on; a collector that ignored the lease would have finished long before them.
  for (let index = 0; index < 50; index++) {
    await here.storage.createDirectory({ ...BY_OWNER, parentId: here.parentId, name: `d${index}` });
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.ok(existsSync(path));
  child.kill("SIGKILL");
  await until(() => !existsSync(path));
});

test("wherever a backup is cut off nothing counts as one, and the next is whole", async (context) => {
  const here = await lab(context);
  await upload(here.storage, { parentId: here.parentId, name: "more", bytes: patterned(200_000, 3) });
  for (let cut = 1; cut <= 2; cut++) {
    let calls = 0;
    const progress = (): void => {
      if (++calls === cut) throw new Error("cut off");
    };
    await assert.rejects(make(here, { progress }), /cut off/);
    assert.deepEqual(listBackups(here.folder), []);
    assert.throws(() => verify(here), refusal("NO_SUCH_PATH"));
    await assert.rejects(restore(here, join(here.folder, "..", "x")), refusal("NO_SUCH_PATH"));
    assert.ok(!existsSync(join(here.folder, "..", "x")));
  }
  const { id } = await make(here);
  assert.equal(verify(here).problemCount, 0);
  // A backup without its last file is none.
  rmSync(join(here.folder, "backups", id, "manifest.json"));
  assert.equal(verify(here).problemCount, 1);
  await assert.rejects(restore(here, join(here.folder, "..", "x")), refusal("CORRUPT"));
  assert.deepEqual(readdirSync(join(here.folder, "backups")), [id]);
});

const ROT: Readonly<Record<string, (file: (name: string) => string, pool: readonly string[]) => void>> = {
  "a bit of a chunk": (_file, [path = ""]) => {
    const bytes = readFileSync(path);
    bytes[1] = (bytes[1] ?? 0) ^ 1;
    rmSync(path);
    writeFileSync(path, bytes);
  },
  "the end of a chunk": (_file, [path = ""]) => {
    const bytes = readFileSync(path);
    rmSync(path);
    writeFileSync(path, bytes.subarray(1));
  },
  "a chunk": (_file, [path = ""]) => rmSync(path),
  "a byte of the database": (file) => flip(file("inodes.db"), 5_000),
  "a byte of the identity": (file) => flip(file("files/identity.json"), 20),
  "a byte of the manifest": (file) => flip(file("manifest.json"), 200),
  "the end of the manifest": (file) => truncateSync(file("manifest.json"), 100),
  "the database": (file) => rmSync(file("inodes.db")),
};

for (const [what, rot] of Object.entries(ROT)) {
  test(`a backup that has lost ${what} does not verify as good, and a restore of it gives out no wrong byte`, async (context) => {
    const here = await lab(context);
    const { id } = await make(here, { copies: true });
    assert.deepEqual(verify(here).backups, [{ id, isGood: true, damagedChunks: 0 }]);
    rot((name) => join(here.folder, "backups", id, name), chunkFiles(here.folder));
    assert.deepEqual(
      verify(here).backups.map(({ isGood }) => isGood),
      [false],
    );
    const target = join(here.folder, "..", "restored");
    const report = await restore(here, target).catch((error: unknown) => {
      assert.ok(refusal("CORRUPT")(error));
      assert.ok(!existsSync(target));
    });
    if (report === undefined) return;
    assert.deepEqual([report.problems.length, report.damagedFiles], [1, 1]);
    const again = await openTestStorage(target);
    context.after(() => again.close());
    await assert.rejects(readAll(again, inodeAt(again, "large").id), refusal("CORRUPT"));
    assert.ok((await readAll(again, inodeAt(again, "small").id)).equals(patterned(1_000)));
  });
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

test("what has rotted on the node is named and left out, and an older backup that has it brings it back", async (context) => {
  const here = await lab(context);
  const first = await make(here, { copies: true });
  await upload(here.storage, { parentId: here.parentId, name: "late", bytes: patterned(300_000, 4) });
  for (const path of chunkFiles(here.directory)) {
    const bytes = readFileSync(path);
    bytes[7] = (bytes[7] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  }
  await assert.rejects(readAll(here.storage, inodeAt(here.storage, "large").id), refusal("CORRUPT"));
  await until(() => inodeAt(here.storage, "large").damaged);
  const second = await make(here, { copies: true });
  assert.equal(second.problems.length, 1);
  assert.deepEqual(
    verify(here).backups.map(({ isGood, damagedChunks }) => [isGood, damagedChunks]),
    [
      [true, 1],
      [true, 0],
    ],
  );
  const target = await restored(here, "healed");
  const again = await openTestStorage(target);
  context.after(() => again.close());
  assert.equal(inodeAt(again, "large").damaged, false);
  assert.ok((await readAll(again, inodeAt(again, "large").id)).equals(patterned(700_000)));
  assert.equal(inodeAt(again, "late").damaged, true);
  await assert.rejects(readAll(again, inodeAt(again, "late").id), refusal("CORRUPT"));
  assert.ok(first.id < second.id);
});

test("a full backup brings anew what has rotted among the backups", async (context) => {
  const here = await lab(context);
  await make(here, { copies: true });
  truncateSync(chunkFiles(here.folder)[0] ?? "", 0);
  await make(here);
  assert.equal(verify(here).problemCount, 2);
  const { newChunks } = await make(here, { full: true, copies: true });
  assert.equal(newChunks, 1);
  assert.equal(verify(here).problemCount, 0);
});

test("a damaged database is not backed up", async (context) => {
  const here = await lab(context);
  await here.storage.close();
  const path = join(here.directory, "inodes.db");
  const bytes = readFileSync(path);
  bytes.fill(0x55, 3 * 4_096, 4 * 4_096);
  writeFileSync(path, bytes);
  await assert.rejects(make(here));
  assert.deepEqual(listBackups(here.folder), []);
});

test("folders that do not fit are refused, and nothing in them is touched", async (context) => {
  const here = await lab(context);
  const top = join(here.folder, "..");
  await assert.rejects(make(here, { directory: join(top, "none") }), refusal("NO_SUCH_PATH"));
  await assert.rejects(make(here, { folder: join(here.directory, "b") }), refusal("BAD_ARGUMENT"));
  const full = join(top, "full");
  mkdirSync(full);
  writeFileSync(join(full, "mine"), "x");
  await assert.rejects(make(here, { folder: full }), refusal("BAD_ARGUMENT"));
  await make(here);
  await assert.rejects(restore(here, full), refusal("BAD_ARGUMENT"));
  assert.equal(readFileSync(join(full, "mine"), "utf8"), "x");
  for (const read of [listBackups, (folder: string) => pruneBackups(folder, 1)]) {
    assert.throws(() => read(full), refusal("NO_SUCH_PATH"));
  }
  // Backups of another directory do not mix with these.
  const other = await lab(context);
  await assert.rejects(make(other, { folder: here.folder }), refusal("BAD_ARGUMENT"));
});

test("a restore that was cut off is neither served nor restored into", async (context) => {
  const here = await lab(context);
  await make(here);
  const target = await restored(here, "cut");
  renameSync(join(target, "identity.json"), join(here.folder, "..", "away"));
  await assert.rejects(openTestStorage(target), refusal("STORAGE_FAILED"));
  await assert.rejects(restore(here, target), refusal("BAD_ARGUMENT"));
});

test("a prune keeps everything when a backup that stays cannot say what it needs", async (context) => {
  const here = await lab(context);
  await make(here);
  const { id } = await make(here);
  appendFileSync(join(here.folder, "backups", id, "inodes.db"), "x");
  assert.throws(() => pruneBackups(here.folder, 1), refusal("CORRUPT"));
  assert.equal(listBackups(here.folder).length, 2);
  assert.equal(chunkFiles(here.folder).map((path) => basename(path)).length, 1);
});
