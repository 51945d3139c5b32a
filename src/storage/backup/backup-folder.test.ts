// Tests of backup folders: reuse of earlier chunks, refusals and warnings, and files left out.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { chunkFiles, openTestStorage, refusal } from "#storage/local/store.fixture.ts";
import { lab, make } from "./backup.fixture.ts";
import { restoreBackup } from "./backup-restore.ts";
import { listBackups, pruneBackups, verifyBackups } from "./backup-verify.ts";

test("a backup of copies does not trust links: it copies what is linked, once, and leans on what only the pool has", async (context) => {
  const here = await lab(context);
  const linked = await make(here);
  assert.deepEqual([linked.newChunks, linked.linkedChunks], [1, 1]);
  const copied = await make(here, { copies: true });
  assert.deepEqual([copied.newChunks, copied.linkedChunks], [1, 0]);
  const again = await make(here, { copies: true });
  assert.deepEqual([again.newChunks, again.savedByOlder], [0, 0]);
  for (const path of chunkFiles(here.directory)) rmSync(path);
  const saved = await make(here, { copies: true });
  assert.deepEqual([saved.newChunks, saved.savedByOlder, saved.problems], [0, 1, []]);
});

test("a mark or a manifest of a newer program is refused, a damaged one told (A-20)", async (context) => {
  const here = await lab(context);
  const { id, manifest } = await make(here);
  const mark = join(here.folder, "grove-backup.json");
  const right = readFileSync(mark);
  for (const [text, code] of [
    ['{"schema":2,"data_id":"x"}', "BAD_ARGUMENT"],
    ['{"schema":1}', "CORRUPT"],
    ['{"schema":"1","data_id":7}', "CORRUPT"],
    ["{", "CORRUPT"],
  ] as const) {
    writeFileSync(mark, text);
    assert.throws(() => listBackups(here.folder), refusal(code), text);
    await assert.rejects(make(here), refusal(code), text);
  }
  writeFileSync(mark, right);
  const newer = { ...manifest, schema: 2 };
  const sha256 = createHash("sha256").update(JSON.stringify(newer)).digest("hex");
  writeFileSync(
    join(here.folder, "backups", id, "manifest.json"),
    JSON.stringify({ sha256, manifest: newer }),
  );
  assert.match(listBackups(here.folder)[0]?.problem ?? "", /newer Grove/);
});

test("a chunk whose checksums contradict each other is told and not backed up; a prune goes past what is not there (A-08)", async (context) => {
  const here = await lab(context);
  await here.storage.close();
  const db = new DatabaseSync(join(here.directory, "inodes.db"));
  db.exec("UPDATE chunk SET block_crcs = x''");
  db.close();
  const { newChunks, problems } = await make(here);
  assert.equal(newChunks, 0);
  assert.match(problems.join("\n"), /has not one checksum per block/);
  rmSync(join(here.folder, "chunks", "00"), { recursive: true });
  assert.equal(pruneBackups(here.folder, 1).removedChunks, 0);
});

test("hidden files beside the audit log are left out of a backup", async (context) => {
  const here = await lab(context);
  mkdirSync(join(here.directory, "audit"));
  for (const name of ["0000000000000001.log", ".0000000000000002.log.tmp"])
    writeFileSync(join(here.directory, "audit", name), "line\n");
  const { manifest } = await make(here);
  const audit = manifest.files.map(({ path }) => path).filter((path) => path.includes("audit"));
  assert.deepEqual(audit, ["files/audit/0000000000000001.log"]);
});

test("one backup can be checked by its name, one that is not there is said to be missing, and a bare folder has none", async (context) => {
  const here = await lab(context);
  const [first, second] = [await make(here), await make(here)];
  const check = (id: string | undefined) => verifyBackups(here.folder, { id, progress: () => undefined });
  assert.deepEqual(
    check(first.id).backups.map(({ id }) => id),
    [first.id],
  );
  assert.deepEqual(
    check(undefined).backups.map(({ id }) => id),
    [second.id, first.id],
  );
  assert.throws(
    () => check("000009-20260101T000000Z"),
    (error) => refusal("NO_SUCH_PATH")(error) && /there is no backup 000009/.test(String(error)),
  );
  rmSync(join(here.folder, "backups"), { recursive: true });
  assert.deepEqual(listBackups(here.folder), []);
  assert.throws(() => check(undefined), /holds no finished backup/);
});

test("where a disk is mounted its lost+found keeps no backup and no restore away (A-20)", async (context) => {
  const here = await lab(context);
  const [target, taken] = ["disk", "taken"].map((name) => join(here.folder, "..", name));
  assert.ok(target !== undefined && taken !== undefined);
  for (const disk of [here.folder, target, taken]) mkdirSync(join(disk, "lost+found"), { recursive: true });
  writeFileSync(join(taken, "mine"), "mine");
  const { id } = await make(here);
  await assert.rejects(make({ ...here, folder: taken }), refusal("BAD_ARGUMENT"));
  const order = {
    folder: here.folder,
    id,
    clock: systemClock,
    random: systemRandom,
    progress: () => undefined,
  };
  await assert.rejects(restoreBackup({ ...order, target: taken }), refusal("BAD_ARGUMENT"));
  assert.deepEqual((await restoreBackup({ ...order, target })).problems, []);
  await (await openTestStorage(target)).close();
});

test("a backup that root makes of a service's data leaves it a lock that it can look at, so that space is freed", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context) => {
  const here = await lab(context);
  const lease = join(here.directory, "backup.lock");
  // As an earlier Grove has left it.
  writeFileSync(lease, "", { mode: 0o600 });
  chownSync(here.directory, 64_242, 64_243);
  await make(here);
  assert.equal(statSync(lease).uid, 64_242);
});
