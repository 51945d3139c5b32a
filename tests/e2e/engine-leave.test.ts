// Tests that a root leaves the shared engine for a node's own disk while its users work, over kills of either side.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { checkData } from "./checked-data.ts";
import { breakOff, makeTree, mustBeSound, quotaOf, signIn, startMixedCluster } from "./mixed-cluster.ts";

const places = enginePlaces();
const { skip } = places;
const run = promisify(execFile);

test("a root leaves the engine under put -r and get -r, over kills of both sides, and comes back: no call fails, and nothing is missing", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, own, engine } = cluster;
  await engine.e1.start();
  await engine.e2.start();
  const [alice, bob] = [await signIn(cluster, "alice"), await signIn(cluster, "bob")];
  const [first, second, large] = [join(folder, "first"), join(folder, "second"), join(folder, "large.bin")];
  await makeTree(first, 121);
  await makeTree(second, 121);
  await writeFile(large, randomBytes(60_000_000));
  await alice.ok("put", "-r", first, "/");
  await alice.ok("share", "/first", bob.email);
  await alice.withInput("to be deleted", "write", "/gone.txt");
  await alice.ok("rm", "/gone.txt");
  await breakOff(alice, large, "/large.bin");
  const before = await quotaOf(alice);
  const etag = JSON.parse(await alice.ok("stat", "/first/d0/e0/f0", "--json"))["etag"] as string;
  await own.start();

  const put = alice.start("put", "-r", second, "/");
  const get = bob.start("get", "-r", `${alice.email}:/first`, join(folder, "by-bob"));
  const from = cluster.place(alice.email).home === "e1" ? engine.e1 : engine.e2;
  await cluster.operate("root", "move", alice.email, "-to", "n1");
  await until(async () => (await cluster.count("move_bucket")) > 1, "a root on its way");
  // Neither side has a word in it; the engine's other node may go on with the root.
  await Promise.all([from.restart(), own.restart()]);
  await until(() => cluster.place(alice.email).home === "n1", "the switch");
  for (const [what, program] of [
    ["put -r of the owner", put],
    ["get -r of the other user", get],
  ] as const) {
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, `${what}: ${stderr}`);
  }
  const now = await quotaOf(alice);
  assert.equal(now["staging_bytes"], before["staging_bytes"]);
  assert.equal(now["trash_bytes"], before["trash_bytes"]);
  assert.equal(JSON.parse(await alice.ok("stat", "/first/d0/e0/f0", "--json"))["etag"], etag);
  for (const [path, at] of [
    ["/first", first],
    ["/second", second],
  ] as const) {
    const back = join(folder, `back${path.slice(1)}`);
    await alice.ok("get", "-r", path, back);
    await run("diff", ["-r", at, back]);
    await rm(back, { recursive: true });
  }
  await run("diff", ["-r", first, join(folder, "by-bob")]);
  await alice.ok("put", large, "/large.bin");
  await alice.ok("get", "/large.bin", join(folder, "large-back"));
  await run("cmp", [large, join(folder, "large-back")]);
  await alice.ok("trash", "restore", "/gone.txt");
  assert.equal(await alice.ok("cat", "/gone.txt"), "to be deleted");
  await mustBeSound(cluster);
  await cluster.operate("root", "move", alice.email, "-confirm");
  await until(() => cluster.place(alice.email).state === "", "the end of the move");
  await mustBeSound(cluster);

  // Back again, and the node that serves it dies: epochs of the time before do not count.
  await cluster.operate("root", "move", alice.email, "-to", "e1", "-wait");
  await alice.ok("get", "-r", "/second", join(folder, "again"));
  await run("diff", ["-r", second, join(folder, "again")]);
  await cluster.operate("root", "move", alice.email, "-confirm");
  await until(() => cluster.place(alice.email).state === "", "the end of the way back");
  await engine.e1.end("SIGKILL");
  await until(async () => (await alice.grove("cat", "/gone.txt")).code === 0, "the other node");
  await bob.ok("get", "-r", `${alice.email}:/first`, join(folder, "by-bob-again"));
  await run("diff", ["-r", first, join(folder, "by-bob-again")]);
  await mustBeSound(cluster);
  for (const server of [engine.e2, own]) await server.end("SIGTERM");
  await checkData(own.data);
});

test("the node that a root leaves dies for good after the switch: the engine's other node removes what is left", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, own, engine } = cluster;
  await engine.e1.start();
  const alice = await signIn(cluster, "alice");
  const tree = join(folder, "tree");
  await makeTree(tree, 41);
  await alice.ok("put", "-r", tree, "/");
  const before = await alice.ok("quota", "--json");
  await own.start();
  await engine.e2.start();
  await cluster.operate("root", "move", alice.email, "-to", "n1");
  await until(() => cluster.place(alice.email).home === "n1", "the switch");
  await engine.e1.end("SIGKILL");
  await cluster.operate("root", "move", alice.email, "-confirm");
  await alice.ok("get", "-r", "/tree", join(folder, "back"));
  await run("diff", ["-r", tree, join(folder, "back")]);
  assert.equal(await alice.ok("quota", "--json"), before);
  await until(() => cluster.place(alice.email).state === "", "the end of the move");
  assert.deepEqual(
    await Promise.all(["departure", "file_chunk", "inode"].map((table) => cluster.count(table))),
    [0, 0, 0],
  );
  await mustBeSound(cluster);
  await own.end("SIGTERM");
  await checkData(own.data);
});

test("a drained node of the engine hands its roots to the others, and one changes hands by itself: no call fails", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, engine } = cluster;
  await engine.e1.start();
  const [alice, bob] = [await signIn(cluster, "alice"), await signIn(cluster, "bob")];
  const tree = join(folder, "tree");
  await makeTree(tree, 81);
  await engine.e2.start();
  const put = alice.start("put", "-r", tree, "/");
  await until(async () => (await alice.grove("ls", "/tree")).code === 0, "a put under way");
  await cluster.operate("root", "move", alice.email, "-to", "e2", "-wait");
  assert.equal(cluster.place(alice.email).home, "e2");
  await until(() => cluster.place(alice.email).state === "", "the end of the move");
  await cluster.operate("root", "move", alice.email, "-to", "e1", "-wait");
  const { code, stderr } = await put.ended;
  assert.equal(code, 0, stderr);
  await until(() => cluster.place(alice.email).state === "", "the end of the way back");
  await cluster.operate("node", "drain", "e1", "-yes");
  assert.deepEqual([cluster.place(alice.email).home, cluster.place(bob.email).home], ["e2", "e2"]);
  await alice.ok("get", "-r", "/tree", join(folder, "back"));
  await run("diff", ["-r", tree, join(folder, "back")]);
  await until(() => [alice, bob].every(({ email }) => cluster.place(email).state === ""), "the ends");
  await engine.e1.end("SIGTERM");
  await alice.ok("ls", "/tree");
  await mustBeSound(cluster);
});
