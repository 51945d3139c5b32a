// Tests of the shared engine's flags: what belongs together, and that no secret is taken from or shown in them.
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { sharedAddresses } from "#storage/shared/shared-connection.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { engineSettings } from "./engine-settings.ts";

const STORE = "s3://chunks/here?endpoint=https://s3.example.net&credentials=/etc/grove/s3";
const URL = "postgres://grove@db.example.net/grove";

test("both flags make a shared engine, and none of them files in the data folder", async () => {
  assert.equal(await engineSettings({}, {}), undefined);
  const settings = await engineSettings({ engine: URL, store: STORE }, {});
  assert.deepEqual(settings?.database.hosts, [{ host: "db.example.net", port: 5432 }]);
  assert.equal(settings?.store.bucket, "chunks");
  await assert.rejects(engineSettings({ engine: URL }, {}), /belong together/);
  await assert.rejects(engineSettings({ store: STORE }, {}), /belong together/);
  await assert.rejects(engineSettings({ engine: "sqlite:x", store: STORE }, {}), /postgres:/);
});

test("a password is taken from a private file alone, and never shown", async () => {
  const secret = "postgres://grove:hunter2@db.example.net/grove";
  await assert.rejects(engineSettings({ engine: secret, store: STORE }, {}), (error: Error) => {
    assert.doesNotMatch(error.message, /hunter2/);
    return true;
  });
  const engineFile = join(scratchFolder("grove-engine-"), "url");
  await writeFile(engineFile, `${secret}\n`, { mode: 0o600 });
  const settings = await engineSettings({ engineFile, store: STORE }, {});
  assert.equal(settings?.database.password, "hunter2");
  await assert.rejects(engineSettings({ engine: URL, engineFile, store: STORE }, {}), /not both/);
  await chmod(engineFile, 0o644);
  await assert.rejects(engineSettings({ engineFile, store: STORE }, {}), /others may read/);
});

test("a new connection takes the password that the file has by then", async () => {
  const engineFile = join(scratchFolder("grove-engine-"), "url");
  const write = (text: string): Promise<void> => writeFile(engineFile, `${text}\n`, { mode: 0o600 });
  await write("postgres://grove:first@db.example.net/grove");
  const settings = await engineSettings({ engineFile, store: STORE }, {});
  assert.ok(settings !== undefined);
  const [address] = sharedAddresses(settings.database, {});
  const password = address?.config.password as () => Promise<string>;
  assert.equal(await password(), "first");
  await write("postgres://grove:second@db.example.net/grove");
  assert.equal(await password(), "second");
  await write("half of a");
  assert.equal(await password(), "second");
});

test("a lease of another length is taken in seconds", async () => {
  const settings = await engineSettings({ engine: URL, store: STORE, engineLease: 3 }, {});
  assert.equal(settings?.leaseMs, 3_000);
  assert.equal((await engineSettings({ engine: URL, store: STORE }, {}))?.leaseMs, undefined);
});
