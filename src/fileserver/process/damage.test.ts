// Damage over gRPC: no wrong byte, DATA_LOSS until the owner overwrites, and an alert (A-08, D11, T8).
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isTakenFile, isTakenFolder, isTakenInside } from "#storage/chunks/backup-layout.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import { parts, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const TOKEN = "t".repeat(32);
let node: TestNode;
let user: TestUser;

before(async () => {
  node = await startTestNode({
    options: { metricsToken: TOKEN, scrub: { bytesPerSecond: 2 ** 40, pauseMs: 86_400_000 } },
  });
  user = await node.signIn("ada@example.com");
});

after(() => node.stop());

async function metrics(token?: string): Promise<Record<string, unknown>> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const reply = await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics`, { headers });
  return (await reply.json()) as Record<string, unknown>;
}

test("a flipped byte: DATA_LOSS, the mark in Attr and listings, the count for all and the path for whoever has the token", async () => {
  await user.upload(parts("/bad", Buffer.alloc(1_000_000, 1), 1_000_000));
  const chunks = join(node.dataFolder, "chunks");
  const [chunk] = readdirSync(chunks, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const path = join(chunk?.parentPath ?? "", chunk?.name ?? "");
  const bytes = readFileSync(path);
  bytes[999_999] = 2;
  writeFileSync(path, bytes);
  await user.upload(parts("/good", Buffer.alloc(300_000, 3), 300_000));

  for (let again = 0; again < 2; again++) {
    const refused = await refusal(user.call.readFile({ path: "/bad", offset: 999_000n, length: 1_000 }));
    assert.deepEqual([refused.code, refused.reason], [Code.DATA_LOSS, "CORRUPT"]);
  }
  const download = await refusal(user.download({ path: "/bad" }));
  assert.deepEqual([download.code, download.reason], [Code.DATA_LOSS, "CORRUPT"]);
  // The answer does not wait for the write of the mark.
  await until(async () => (await user.call.getAttr({ path: "/bad" })).damaged);
  const { entries } = await user.call.listDir({ path: "/" });
  assert.deepEqual(
    entries.map(({ name, damaged }) => [name, damaged]),
    [
      ["bad", true],
      ["good", false],
    ],
  );
  assert.equal((await user.call.readFile({ path: "/good", offset: 0n, length: 5 })).data.length, 5);

  const told = await metrics();
  assert.deepEqual(
    [told["damaged_file_count"], told["damage_found_total"], told["damaged_files"]],
    [1, 1, undefined],
  );
  const { damaged_files: files } = await metrics(TOKEN);
  assert.deepEqual(files, [{ username: "ada@example.com", path: "/bad", trashed: false, size: 1_000_000 }]);

  await user.upload(parts("/bad", Buffer.alloc(70_000, 4), 70_000));
  assert.equal((await user.call.getAttr({ path: "/bad" })).damaged, false);
  assert.deepEqual((await metrics(TOKEN))["damaged_files"], []);
  assert.equal((await metrics())["damaged_file_count"], 0);
});

test("whatever a node keeps at the top of its data folder a backup takes or leaves on purpose", () => {
  const left = new Set([
    "backup.lock",
    "grove.lock",
    "inodes.db",
    "inodes.db-shm",
    "inodes.db-wal",
    "last_process",
    "chunks",
    "ballast",
  ]);
  for (const entry of readdirSync(node.dataFolder, { withFileTypes: true })) {
    const isTaken = entry.isDirectory() ? isTakenFolder(entry.name) : isTakenFile(entry.name);
    const isJournal = entry.name.endsWith("-journal");
    assert.ok(isTaken || left.has(entry.name) || isJournal, `nobody has decided about ${entry.name}`);
  }
});

test("a node's certificate and what it joined as are taken, its key only when asked for", () => {
  assert.equal(isTakenFolder("tls"), true);
  const keys = [false, true];
  assert.deepEqual(
    keys.map((asked) => isTakenInside("tls", "node.key", asked)),
    [false, true],
  );
  for (const name of [
    "node.json",
    "quota_config.json",
    "quota_config.json.previous",
    "subjects.json",
    "identity.json",
    "cluster_id",
  ]) {
    assert.ok(isTakenFile(name), name);
  }
  for (const name of ["node.key", ".x.json", "ballast", "inodes.db"]) assert.ok(!isTakenFile(name), name);
});
