// Runs the store's contract on SQLite, and tests what is particular to a file.
import assert from "node:assert/strict";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { Directory } from "./directory.ts";
import { testDirectoryContract } from "./directory-contract.fixture.ts";
import { openDirectory, openDirectoryReader, openNodeStore } from "./open-directory.ts";
import { LEASE_LOOK_INTERVAL_MS } from "./sqlite-directory.ts";
import { sshNode } from "./ssh-nodes-contract.fixture.ts";
import { beat, registration } from "./store-under-test.fixture.ts";

testDirectoryContract("sqlite", async (clock, cleanUp) => {
  const path = join(scratchFolder("directory-"), "meta.db");
  let directory = await openDirectory(`sqlite:${path}`, { clock });
  cleanUp(() => directory.close());
  return {
    directory,
    async reopen(): Promise<Directory> {
      await directory.close();
      directory = await openDirectory(`sqlite:${path}`, { clock });
      return directory;
    },
  };
});

async function openTemporary(t: TestContext): Promise<{ path: string; directory: Directory }> {
  const path = join(scratchFolder("directory-"), "new folder", "meta.db");
  const directory = await openDirectory(`sqlite:${path}`, { clock: new ManualClock() });
  t.after(() => directory.close());
  return { path, directory };
}

test("the file is made with its folder, and only its owner may read it", async (t) => {
  const { path } = await openTemporary(t);
  for (const name of [path, `${path}-wal`]) assert.equal((await stat(name)).mode & 0o777, 0o600, name);
});

test("another process reads the file while the store is open", async (t) => {
  const { path, directory } = await openTemporary(t);
  await directory.register(registration("a"));
  const reader = new DatabaseSync(path, { readOnly: true });
  assert.equal(reader.prepare("SELECT fs_id FROM nodes").get()?.["fs_id"], "a");
  await directory.register(registration("b"));
  assert.equal(reader.prepare("SELECT COUNT(*) AS count FROM nodes").get()?.["count"], 2);
  reader.close();
});

test("time in which the MetaServer stood still ends no lease, the silence afterwards does", async (t) => {
  const clock = new ManualClock();
  const path = join(scratchFolder("directory-"), "meta.db");
  const directory = await openDirectory(`sqlite:${path}`, { clock });
  t.after(() => directory.close());
  const isLive = async (): Promise<boolean | undefined> => (await directory.nodes())[0]?.live;
  await directory.register(registration("a"));
  clock.advance(10_000);
  clock.standStill(3_600_000);
  assert.equal(await isLive(), true);
  clock.advance(NODE_LEASE_MS - 10_000 - 2 * LEASE_LOOK_INTERVAL_MS - 1);
  assert.equal(await isLive(), true);
  clock.advance(1);
  assert.equal(await isLive(), false);
});

test("a second process cannot write to the store, and the next one can", async (t) => {
  const { path, directory } = await openTemporary(t);
  const open = (): Promise<Directory> => openDirectory(`sqlite:${path}`, { clock: new ManualClock() });
  await assert.rejects(open(), (error) => isGroveError(error, "DATA_IN_USE"));
  await directory.close();
  await (await open()).close();
});

test("a store of a newer Grove is refused and left as it is (D18)", async (t) => {
  const { path, directory } = await openTemporary(t);
  await directory.close();
  const database = new DatabaseSync(path);
  database.exec("PRAGMA user_version = 99");
  database.close();
  await assert.rejects(openDirectory(`sqlite:${path}`, { clock: new ManualClock() }), /schema 99/);
});

test("an upgrade that is cut short leaves the store as it was, and the copy from before it", async (t) => {
  const { path, directory } = await openTemporary(t);
  await directory.register(registration("a"));
  await directory.close();
  const versionOf = (file: string): unknown => {
    const database = new DatabaseSync(file, { readOnly: true });
    const version = database.prepare("PRAGMA user_version").get()?.["user_version"];
    database.close();
    return version;
  };
  const latest = Number(versionOf(path));
  // Two steps back, with something in the way of the second step forward.
  const before = new DatabaseSync(path);
  before.exec(`
    DROP INDEX subjects_by_version; ALTER TABLE subjects DROP COLUMN version; CREATE TABLE subjects_by_version (x);
    DROP TABLE staged_pages; DROP TABLE unlisted_nodes; DROP INDEX roots_held_by_node;
    CREATE INDEX roots_by_node ON roots (fs_id); PRAGMA user_version = ${latest - 2}`);
  before.close();
  const open = (): Promise<Directory> => openDirectory(`sqlite:${path}`, { clock: new ManualClock() });
  const copy = `${path}.schema-${latest - 2}`;
  for (let time = 0; time < 2; time++) {
    await assert.rejects(open(), /subjects_by_version/);
    assert.deepEqual([versionOf(path), versionOf(copy)], [latest - 2, latest - 2]);
  }
  const cleared = new DatabaseSync(path);
  cleared.exec("DROP TABLE subjects_by_version");
  cleared.close();
  const again = await open();
  t.after(() => again.close());
  assert.deepEqual(
    (await again.nodes()).map(({ fsId }) => fsId),
    ["a"],
  );
  assert.deepEqual([versionOf(path), versionOf(copy)], [latest, latest - 2]);
});

test("a file that is something else is refused", async () => {
  const folder = scratchFolder("directory-");
  const text = join(folder, "text.db");
  await writeFile(text, "x".repeat(8_192));
  const foreign = join(folder, "foreign.db");
  const database = new DatabaseSync(foreign);
  database.exec("CREATE TABLE mine (x)");
  database.close();
  for (const path of [text, foreign, folder]) {
    await assert.rejects(
      openDirectory(`sqlite:${path}`, { clock: new ManualClock() }),
      (error) => isGroveError(error, "STORE_UNAVAILABLE", "BAD_ARGUMENT"),
      path,
    );
  }
});

test("a damaged file makes the store fail for good, and it says so", async (t) => {
  const { path, directory } = await openTemporary(t);
  await directory.register(registration("a"));
  const other = new DatabaseSync(path);
  other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  other.close();
  await writeFile(path, Buffer.alloc((await stat(path)).size, 0x5a));
  const outcome = await directory.nodes().then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(isGroveError(outcome, "STORE_UNAVAILABLE"), String(outcome));
  assert.ok(isGroveError(await directory.failed, "STORE_UNAVAILABLE"));
  await assert.rejects(directory.register(registration("b")), (error) =>
    isGroveError(error, "STORE_UNAVAILABLE"),
  );
});

test("only the URLs that are built in are taken, and none is quoted back (D19)", async () => {
  const clock = new ManualClock();
  for (const url of [
    "",
    "sqlite:",
    "file:///secret",
    "/secret",
    "postgres:secret",
    "postgres://u:%secret@h/d",
  ]) {
    await assert.rejects(
      openDirectory(url, { clock }),
      (error) => isGroveError(error, "BAD_ARGUMENT") && !error.message.includes("secret"),
    );
  }
});

test("a reader sees what the MetaServer writes, also after the store was lost and made again, and changes nothing (D19)", async (t) => {
  const clock = new ManualClock();
  const path = join(scratchFolder("directory-"), "meta.db");
  const url = `sqlite:${path}`;
  await assert.rejects(openDirectoryReader(url, { clock }), (error) =>
    isGroveError(error, "STORE_UNAVAILABLE"),
  );
  await assert.rejects(stat(path), { code: "ENOENT" });
  let directory = await openDirectory(url, { clock });
  t.after(() => directory.close());
  const reader = await openDirectoryReader(url, { clock });
  t.after(() => reader.close());
  assert.deepEqual(await reader.nodes(), []);
  const { epoch } = await directory.register(registration("a"));
  assert.deepEqual(await reader.nodes(), await directory.nodes());
  const { owner } = await directory.locateRoot("alice@example.com");
  assert.deepEqual(await reader.listRoots(), await directory.listRoots());
  assert.deepEqual(await reader.findRoot(owner), await directory.findRoot(owner));
  clock.advance(30_000);
  assert.equal((await reader.nodes())[0]?.live, false);
  await directory.heartbeat(beat("a", epoch));
  assert.equal((await reader.nodes())[0]?.live, true);

  await directory.close();
  assert.equal((await reader.nodes())[0]?.fsId, "a");
  for (const name of await readdir(dirname(path))) await rm(join(dirname(path), name));
  await assert.rejects(reader.nodes(), (error) => isGroveError(error, "STORE_UNAVAILABLE"));
  directory = await openDirectory(url, { clock });
  await directory.register(registration("b"));
  assert.equal((await reader.nodes())[0]?.fsId, "b");
});

test("nodes are enrolled beside the MetaServer that has the store open, and all three see them (D20)", async (t) => {
  const clock = new ManualClock();
  const path = join(scratchFolder("directory-"), "meta.db");
  const url = `sqlite:${path}`;
  await assert.rejects(openNodeStore(url, { clock }), (error) => isGroveError(error, "STORE_UNAVAILABLE"));
  await assert.rejects(stat(path), { code: "ENOENT" });
  const directory = await openDirectory(url, { clock });
  t.after(() => directory.close());
  const reader = await openDirectoryReader(url, { clock });
  t.after(() => reader.close());
  const enroller = await openNodeStore(url, { clock });
  t.after(() => enroller.close());
  await enroller.putSshNode(sshNode("a"));
  for (const store of [directory, reader, enroller]) assert.deepEqual(await store.sshNodes(), [sshNode("a")]);
  await directory.register(registration("a"));
  assert.equal((await enroller.nodes())[0]?.fsId, "a");
  assert.equal(await enroller.removeSshNode("a"), true);
  assert.deepEqual(await reader.sshNodes(), []);
});
