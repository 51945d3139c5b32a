// Tests that a root is written again which a move has frozen that the restored metadata store does not know.
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { runGrove } from "#testing/run-grove.ts";
import { until } from "#testing/until.ts";
import { checkData } from "./checked-data.ts";
import { type MovingCluster, type Server, startMovingCluster } from "./moving-cluster.ts";
import type { Person } from "./people.ts";

/** No move is switched: a freeze that lasts for some milliseconds is missed on a busy machine. */
const HELD_SWITCH = `
  CREATE TRIGGER held_switch BEFORE INSERT ON settings
  WHEN NEW.key LIKE 'root_move:%' AND json_extract(NEW.value, '$.state') = 'switched'
  BEGIN SELECT RAISE(ABORT, 'held'); END`;

/** The state of the only move of a node. */
function stateAt({ data }: Server): string {
  const database = new DatabaseSync(join(data, "inodes.db"), { readOnly: true, timeout: 5_000 });
  try {
    return String(database.prepare("SELECT state FROM root_move").get()?.["state"] ?? "");
  } finally {
    database.close();
  }
}

async function restore(store: string, older: string): Promise<void> {
  for (const end of ["-wal", "-shm"]) await rm(store + end, { force: true });
  await cp(older, store);
}

/** Ends all servers while the root's node has it frozen, and puts a metadata store back from before the move. */
async function freezeAndLose(cluster: MovingCluster, alice: Person): Promise<{ from: Server; to: Server }> {
  const { folder, meta, nodes } = cluster;
  const [store, older] = [join(meta.data, "metadata.db"), join(folder, "older.db")];
  await meta.end("SIGTERM");
  await cp(store, older);
  await meta.start();
  const database = new DatabaseSync(store, { timeout: 5_000 });
  database.exec(HELD_SWITCH);
  database.close();
  const source = cluster.homeOf(alice);
  const target = source === "n1" ? "n2" : "n1";
  const [from, to] = [nodes[source] ?? assert.fail(), nodes[target] ?? assert.fail()];
  await cluster.move(alice.email, "-to", target);
  await until(() => stateAt(from) === "frozen", "the freeze");
  await meta.end("SIGKILL");
  assert.equal(stateAt(from), "frozen");
  for (const server of [from, to]) await server.end("SIGKILL");
  await restore(store, older);
  return { from, to };
}

test("a root that a lost move has frozen waits for the lists of all nodes, as the operator reads, and is written again", {
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMovingCluster(t);
  const { meta, nodes } = cluster;
  const alice = await cluster.signIn("alice");
  await alice.withInput("of alice", "write", "/note");
  const { from, to } = await freezeAndLose(cluster, alice);
  await meta.start();
  await from.start();
  await until(() => cluster.seen(alice)?.state === "frozen", "the word of the root's node");
  const source = cluster.homeOf(alice);
  const target = source === "n1" ? "n2" : "n1";
  await until(
    async () => (await cluster.move(alice.email)).includes(` waits: ${target} must list their roots first`),
    "what the root waits for",
  );
  assert.equal(stateAt(from), "frozen");
  const words = ["root", "move", alice.email, "-undo", "-meta", `sqlite:${join(meta.data, "metadata.db")}`];
  const undone = await runGrove(words);
  assert.notEqual(undone.code, 0);
  assert.match(undone.err, /must list their roots first/);
  await to.start();
  await until(() => cluster.seen(alice) === undefined, "the end of the lost move");
  assert.equal(await alice.ok("cat", "/note"), "of alice");
  await alice.withInput("of today", "write", "/note");
  assert.equal(await alice.ok("cat", "/note"), "of today");
  assert.equal(cluster.homeOf(alice), source);
  await cluster.stop();
  for (const { data } of Object.values(nodes)) await checkData(data);
});
