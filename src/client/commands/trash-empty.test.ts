// Tests that `trash empty` deletes what it has counted and nothing else, whatever the server's clock says.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { makeTestClient, type TestClient } from "./client.fixture.ts";
import { type FakeServer, startFakeServer } from "./fake-server.fixture.ts";

const NOW_MS = 1_795_000_000_000n;
const DAY_MS = 86_400_000n;

let client: TestClient;
let server: FakeServer;
/** Times of what is in the trash, by id. */
const trash = new Map<string, bigint>();
/** The server's clock; 0 where it does not tell it. */
let serverMs = 0n;
/** What another program trashes after the count, before anything is deleted. */
let meanwhile: [string, bigint] | undefined;

before(async () => {
  client = await makeTestClient();
  server = await startFakeServer({
    showTrash: ({ pageToken }) => {
      const ids = [...trash.keys()];
      const id = pageToken === "" ? ids[0] : pageToken;
      if (id === undefined) return {};
      const item = { trashId: id, originalPath: `/${id}`, kind: Kind.FILE, size: 10n, inodeCount: 1n };
      const trashedAtMs = trash.get(id) ?? 0n;
      return {
        items: [{ ...item, trashedAtMs }],
        nextPageToken: ids[ids.indexOf(id) + 1] ?? "",
        nowMs: serverMs,
      };
    },
    purgeTrash: ({ trashIds, trashedBeforeMs }) => {
      if (meanwhile !== undefined) trash.set(...meanwhile);
      meanwhile = undefined;
      const isMeant = (id: string, timeMs: bigint): boolean =>
        trashIds.length > 0 ? trashIds.includes(id) : timeMs < trashedBeforeMs;
      const purged = [...trash].filter(([id, timeMs]) => isMeant(id, timeMs));
      for (const [id] of purged) trash.delete(id);
      return { purgedItems: BigInt(purged.length), freedBytes: BigInt(purged.length) * 10n };
    },
  });
  const words = ["--mock", "a@b.c", "--fileserver", server.address];
  const signedIn = await client.run(import("./login-command.ts"), words);
  assert.equal(signedIn.code, 0, signedIn.err);
});

after(async () => {
  await server.stop();
  await client.stop();
});

test("what is trashed after the count stays, also where the server's clock was set back since (D14)", async () => {
  trash.set("ahead", NOW_MS + DAY_MS).set("older", NOW_MS - DAY_MS);
  meanwhile = ["later", NOW_MS];
  const result = await client.run(import("./trash-command.ts"), ["empty", "--yes"]);
  assert.equal(result.err, "Deleted for good: 2 items, 20 B.\n");
  assert.deepEqual([...trash.keys()], ["later"]);
});

test("with --older-than what is younger stays (D14)", async () => {
  trash.clear();
  trash.set("young", BigInt(Date.now())).set("old", BigInt(Date.now()) - 10n * DAY_MS);
  const result = await client.run(import("./trash-command.ts"), ["empty", "--older-than", "7d", "--yes"]);
  assert.equal(result.err, "Deleted for good: 1 item, 10 B.\n");
  assert.deepEqual([...trash.keys()], ["young"]);
});

test("the age of what is in the trash is counted by the server's clock, also where this machine's is days ahead", async () => {
  serverMs = BigInt(Date.now()) - 30n * DAY_MS;
  trash.clear();
  // By this machine's clock both are older than a week.
  trash.set("young", serverMs - DAY_MS).set("old", serverMs - 8n * DAY_MS);
  const result = await client.run(import("./trash-command.ts"), ["empty", "--older-than", "7d", "--yes"]);
  assert.equal(result.err, "Deleted for good: 1 item, 10 B.\n");
  assert.deepEqual([...trash.keys()], ["young"]);
});
