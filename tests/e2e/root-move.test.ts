// Tests that a root moves between two processes while its users work, and that kills at any step lose nothing.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { runGrove } from "#testing/run-grove.ts";
import { until } from "#testing/until.ts";
import { checkData } from "./checked-data.ts";
import { breakOff } from "./mixed-cluster.ts";
import { type MovingCluster, type Seen, startMovingCluster } from "./moving-cluster.ts";
import type { Person } from "./people.ts";

/** Kills at more steps: GROVE_E2E_ROUNDS=30 node --test tests/e2e/root-move.test.ts */
const ROUNDS = Number(process.env["GROVE_E2E_ROUNDS"] ?? 2);
/** So long that an upload is cut amid it. */
const LARGE_BYTES = 60_000_000;
const run = promisify(execFile);

/** Files of all sizes, also of several chunks, in nested folders. */
async function makeTree(folder: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const inner = join(folder, `d${index % 5}`, `e${index % 11}`);
    await mkdir(inner, { recursive: true });
    const size = index % 100 === 0 ? 9_000_000 + index : index % 20 === 0 ? 200_000 + index : index * 9;
    const bytes = Buffer.alloc(size, `${index} `);
    if (size > 20) bytes.writeUInt32BE(index, 10);
    await writeFile(join(inner, `f${index}`), bytes);
  }
}

/** Rejects, with what differs, unless both hold the same. */
async function mustBeSame(one: string, other: string): Promise<void> {
  await run("diff", ["-r", one, other]);
}

const otherOf = (node: string): string => (node === "n1" ? "n2" : "n1");

/** Waits until nothing is left of a move and of the copy that it has left behind. */
async function ended(cluster: MovingCluster, person: Person): Promise<void> {
  await until(() => cluster.seen(person) === undefined, "the end of the move");
}

async function stagedBytes(person: Person): Promise<number> {
  const quota = JSON.parse(await person.ok("quota", "--json")) as Record<string, unknown>;
  return Number(quota["staging_bytes"]);
}

async function etagOf(person: Person): Promise<unknown> {
  const stat = JSON.parse(await person.ok("stat", "/first/d0/e0/f0", "--json")) as Record<string, unknown>;
  assert.equal(typeof stat["etag"], "string");
  return stat["etag"];
}

test("a root moves under put -r and get -r of two users: no call fails, and shares, trash, uploads and quota go along", {
  timeout: 240_000,
}, async (t: TestContext) => {
  const cluster = await startMovingCluster(t);
  const { folder } = cluster;
  const [alice, bob] = [await cluster.signIn("alice"), await cluster.signIn("bob")];
  const [first, second] = [join(folder, "first"), join(folder, "second")];
  await makeTree(first, 160);
  await makeTree(second, 240);
  await alice.ok("put", "-r", first, "/");
  await alice.ok("share", "/first", bob.email);
  await alice.ok("mkdir", "/inbox");
  await alice.ok("share", "/inbox", bob.email);
  await alice.withInput("to be deleted", "write", "/gone.txt");
  await alice.ok("rm", "/gone.txt");
  // An upload that has begun and is cut: the same command goes on with it after the move.
  const large = join(folder, "large.bin");
  await writeFile(large, Buffer.alloc(LARGE_BYTES, "large "));
  await breakOff(alice, large, "/large.bin");
  const staged = await stagedBytes(alice);
  assert.ok(staged > 0 && staged < LARGE_BYTES, String(staged));
  const before = await etagOf(alice);
  const source = cluster.homeOf(alice);
  const put = alice.start("put", "-r", second, "/");
  const get = bob.start("get", "-r", `${alice.email}:/first`, join(folder, "by-bob"));
  await cluster.move(alice.email, "-to", otherOf(source), "-wait");
  assert.equal(cluster.homeOf(alice), otherOf(source));
  const into = bob.start("put", "-r", first, `${alice.email}:/inbox`);
  for (const [what, program] of [
    ["put -r of the owner", put],
    ["get -r of the other user", get],
    ["put -r of the other user", into],
  ] as const) {
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, `${what}: ${stderr}`);
  }
  await alice.ok("get", "-r", "/first", join(folder, "first-back"));
  await alice.ok("get", "-r", "/second", join(folder, "second-back"));
  await alice.ok("get", "-r", "/inbox/first", join(folder, "inbox-back"));
  await mustBeSame(first, join(folder, "first-back"));
  await mustBeSame(second, join(folder, "second-back"));
  await mustBeSame(first, join(folder, "by-bob"));
  await mustBeSame(first, join(folder, "inbox-back"));
  assert.equal(await etagOf(alice), before);
  assert.equal(await stagedBytes(alice), staged);
  await alice.ok("put", large, "/large.bin");
  await alice.ok("get", "/large.bin", join(folder, "large-back.bin"));
  await mustBeSame(large, join(folder, "large-back.bin"));
  assert.equal(await stagedBytes(alice), 0);
  await alice.ok("trash", "restore", "/gone.txt");
  assert.equal(await alice.ok("cat", "/gone.txt"), "to be deleted");
  await alice.ok("unshare", "/first", bob.email);
  assert.notEqual((await bob.grove("ls", `${alice.email}:/first`)).code, 0);
  await alice.ok("rm", "-r", "/inbox");
  await cluster.move(alice.email, "-confirm");
  await ended(cluster, alice);
  await cluster.stop();
  for (const { data } of Object.values(cluster.nodes)) await checkData(data);
  await rm(folder, { recursive: true, force: true });
});

/** A step of a move, and the process that is killed there. */
interface Kill {
  readonly step: string;
  readonly at: (seen: Seen) => boolean;
  readonly decide?: "-undo" | "-confirm";
}

const KILLS: readonly Kill[] = [
  { step: "once the export has begun", at: ({ atSource }) => atSource !== "" },
  { step: "in a round", at: ({ hasRows }) => hasRows },
  { step: "after the freeze", at: ({ state, atSource }) => state === "frozen" || atSource === "frozen" },
  { step: "after the switch", at: ({ state }) => state === "switched" },
  { step: "after the target serves", at: ({ atTarget }) => atTarget === "arrived" },
  { step: "once it is undone", at: ({ hasRows }) => hasRows, decide: "-undo" },
  { step: "once it is confirmed", at: ({ atTarget }) => atTarget === "arrived", decide: "-confirm" },
];
const VICTIMS = ["source", "target", "meta", "all"] as const;

test("a kill of either node, of the MetaServer or of all at any step of a move loses nothing, and the move goes on or is undone", {
  timeout: 120_000 + ROUNDS * 60_000,
}, async (t: TestContext) => {
  const cluster = await startMovingCluster(t);
  const { folder, meta, nodes } = cluster;
  const alice = await cluster.signIn("alice");
  const tree = join(folder, "tree");
  await makeTree(tree, 60);
  await alice.ok("put", "-r", tree, "/");
  const pairs = VICTIMS.flatMap((victim) => KILLS.map((kill) => ({ victim, kill })));
  const start = Number(process.env["GROVE_E2E_SEED"] ?? Math.floor(Math.random() * pairs.length));
  for (let round = 0; round < Math.min(ROUNDS, pairs.length); round++) {
    // Nine is coprime to the number of pairs.
    const { victim, kill } = pairs[(start + round * 9) % pairs.length] ?? assert.fail();
    const what = `${victim} killed ${kill.step} (GROVE_E2E_SEED=${start}, round ${round})`;
    t.diagnostic(what);
    const before = await alice.ok("quota", "--json");
    const source = cluster.homeOf(alice);
    const target = otherOf(source);
    await cluster.move(alice.email, "-to", target);
    await until(() => {
      const seen = cluster.seen(alice);
      return seen !== undefined && (kill.at(seen) || seen.state === "switched");
    }, `${kill.step} of a move`);
    if (kill.decide === "-confirm") await cluster.move(alice.email, "-confirm");
    // The move may have switched before it could be undone.
    const undone =
      kill.decide === "-undo" &&
      (await cluster.move(alice.email, "-undo").then(
        () => true,
        () => false,
      ));
    const [from, to] = [nodes[source] ?? assert.fail(), nodes[target] ?? assert.fail()];
    const victims = { source: [from], target: [to], meta: [meta] };
    const killed = victim === "all" ? Object.values(victims).flat() : victims[victim];
    await Promise.all(killed.map((server) => server.end("SIGKILL")));
    for (const server of killed.toReversed()) await server.start();
    if (!undone) {
      await until(() => cluster.homeOf(alice) === target, `the switch after ${what}`);
      if (kill.decide !== "-confirm") await cluster.move(alice.email, "-confirm");
    }
    await ended(cluster, alice);
    assert.equal(cluster.homeOf(alice), undone ? source : target, what);
    const back = join(folder, `back${round}`);
    await alice.ok("get", "-r", "/tree", back);
    await mustBeSame(tree, back);
    assert.equal(await alice.ok("quota", "--json"), before, what);
    await alice.withInput(what, "write", `/note${round}`);
    await rm(back, { recursive: true });
  }
  await cluster.stop();
  for (const { data } of Object.values(nodes)) await checkData(data);
});

test("a metadata store from before a root moved makes no empty root at its former node, and finds the root again by itself", {
  timeout: 180_000,
}, async (t: TestContext) => {
  const cluster = await startMovingCluster(t);
  const { folder, meta, nodes } = cluster;
  const alice = await cluster.signIn("alice");
  await alice.withInput("of alice", "write", "/note");
  const source = cluster.homeOf(alice);
  const target = otherOf(source);
  const from = nodes[source] ?? assert.fail();
  const [store, older] = [join(meta.data, "metadata.db"), join(folder, "older.db")];
  await meta.end("SIGTERM");
  await cp(store, older);
  await meta.start();
  await cluster.move(alice.email, "-to", target, "-wait");
  await cluster.move(alice.email, "-confirm");
  await ended(cluster, alice);
  await from.end("SIGTERM");
  await meta.end("SIGTERM");
  for (const end of ["-wal", "-shm"]) await rm(store + end, { force: true });
  await cp(older, store);
  await meta.start();
  await from.start();
  assert.equal(await alice.ok("cat", "/note"), "of alice");
  await until(() => cluster.homeOf(alice) === target, "the place of the root");
  const again = await cluster.signIn("alice");
  assert.equal(await again.ok("cat", "/note"), "of alice");
  await cluster.stop();
  for (const { data } of Object.values(nodes)) await checkData(data);
  const database = new DatabaseSync(join(from.data, "inodes.db"), { readOnly: true });
  assert.deepEqual(database.prepare("SELECT owner FROM root").all(), []);
  database.close();
});

test("a node from before a move has ended serves its old copy no more, keeps it, and removes it once that is confirmed", {
  timeout: 180_000,
}, async (t: TestContext) => {
  const cluster = await startMovingCluster(t);
  const { folder, nodes } = cluster;
  const alice = await cluster.signIn("alice");
  await alice.withInput("of then", "write", "/note");
  const source = cluster.homeOf(alice);
  const from = nodes[source] ?? assert.fail();
  const older = join(folder, "older");
  await from.end("SIGTERM");
  await cp(from.data, older, { recursive: true });
  await from.start();
  await cluster.move(alice.email, "-to", otherOf(source), "-wait");
  await cluster.move(alice.email, "-confirm");
  await ended(cluster, alice);
  await alice.withInput("of today", "write", "/note");
  await from.end("SIGTERM");
  await rm(from.data, { recursive: true });
  await cp(older, from.data, { recursive: true });
  await from.start();
  await until(() => cluster.seen(alice)?.atSource === "departed", "the copy is served no more");
  assert.match(await cluster.move(alice.email), /lives on n\d now; n\d keeps its copy until you confirm/);
  assert.equal(await alice.ok("cat", "/note"), "of today");
  await from.restart();
  assert.equal(await alice.ok("cat", "/note"), "of today");
  await cluster.move(alice.email, "-confirm");
  await ended(cluster, alice);
  assert.equal(await alice.ok("cat", "/note"), "of today");
  await cluster.stop();
  for (const { data } of Object.values(nodes)) await checkData(data);
});

test("where the new node is lost for good the kept copy is served again, and that node's own no more should it come back", {
  timeout: 180_000,
}, async (t: TestContext) => {
  const cluster = await startMovingCluster(t);
  const { meta, nodes } = cluster;
  const [alice, bob] = [await cluster.signIn("alice"), await cluster.signIn("bob")];
  await alice.ok("mkdir", "/shared");
  await alice.withInput("of then", "write", "/shared/note");
  await alice.ok("share", "/shared", bob.email);
  const source = cluster.homeOf(alice);
  const target = otherOf(source);
  const lost = nodes[target] ?? assert.fail();
  await cluster.move(alice.email, "-to", target, "-wait");
  await until(() => cluster.seen(alice)?.atSource === "departed", "the end of the switch");
  await alice.withInput("of later", "write", "/shared/note");
  await lost.end("SIGKILL");
  const store = join(meta.data, "metadata.db");
  // As if its lease had ended.
  await meta.end("SIGTERM");
  const database = new DatabaseSync(store);
  database.prepare("UPDATE nodes SET last_seen_ms = 0 WHERE fs_id = ?").run(target);
  database.close();
  await meta.start();
  const words = ["root", "move", alice.email, "-take_back", "-meta", `sqlite:${store}`];
  const taken = await runGrove(words, { input: "yes\n" });
  assert.equal(taken.code, 0, taken.err);
  await ended(cluster, alice);
  assert.equal(cluster.homeOf(alice), source);
  assert.equal(await alice.ok("cat", "/shared/note"), "of then");
  await until(async () => (await bob.grove("cat", `${alice.email}:/shared/note`)).code === 0, "bob's way");
  await lost.start();
  await until(() => cluster.seen(alice)?.atSource === "departed", "the lost node's copy");
  assert.equal(cluster.seen(alice)?.source, target);
  assert.equal(await alice.ok("cat", "/shared/note"), "of then");
  await cluster.move(alice.email, "-confirm");
  await ended(cluster, alice);
  await cluster.stop();
  for (const { data } of Object.values(nodes)) await checkData(data);
});
