// Tests that a root moves from a node's own disk to the shared engine while its users work, over kills of either side.
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

test("a root moves to the engine under put -r and get -r, over kills of both sides: no call fails, and nothing is missing", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, own, engine } = cluster;
  await own.start();
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
  await engine.e1.start();
  await engine.e2.start();

  const put = alice.start("put", "-r", second, "/");
  const get = bob.start("get", "-r", `${alice.email}:/first`, join(folder, "by-bob"));
  await cluster.operate("root", "move", alice.email, "-to", "e1");
  await until(async () => (await cluster.count("arrived_chunk")) > 1, "chunks that have come");
  // Neither side has a word in it.
  await Promise.all([engine.e1.restart(), own.restart()]);
  await until(() => cluster.place(alice.email).home === "e1", "the switch");
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
  await alice.ok("unshare", "/first", bob.email);
  assert.notEqual((await bob.grove("ls", `${alice.email}:/first`)).code, 0);
  await cluster.operate("root", "move", alice.email, "-confirm");
  await until(() => cluster.place(alice.email).state === "", "the end of the move");

  // The node that serves it dies, and the other one of the engine goes on.
  await engine.e1.end("SIGKILL");
  await until(async () => (await alice.grove("cat", "/gone.txt")).code === 0, "the other node");
  await alice.ok("get", "-r", "/second", join(folder, "after"));
  await run("diff", ["-r", second, join(folder, "after")]);
  assert.deepEqual((await quotaOf(alice))["staging_bytes"], 0);
  await mustBeSound(cluster);
  for (const server of [engine.e2, own]) await server.end("SIGTERM");
  await checkData(own.data);
});

test("the target in the engine dies for good: its other node goes on with the move, and a drain takes the rest along", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, own, engine } = cluster;
  await own.start();
  const [alice, bob] = [await signIn(cluster, "alice"), await signIn(cluster, "bob")];
  const [tree, large] = [join(folder, "tree"), join(folder, "large")];
  await makeTree(tree, 41);
  await writeFile(large, randomBytes(60_000_000));
  for (const person of [alice, bob]) await person.ok("put", "-r", tree, "/");
  await alice.ok("put", large, "/large");
  const before = [await alice.ok("quota", "--json"), await bob.ok("quota", "--json")];
  await engine.e1.start();
  await engine.e2.start();
  // However fast the engine is, the move lasts as long as its target.
  const letGo = await cluster.holdSwitch();
  await cluster.operate("root", "move", alice.email, "-to", "e1");
  await until(async () => (await cluster.count("arrived_chunk")) > 1, "chunks that have come");
  await engine.e1.end("SIGKILL");
  assert.equal(cluster.place(alice.email).home, "n1");
  await letGo();
  await until(() => cluster.place(alice.email).target === "e2", "the other node as the target");
  await until(() => cluster.place(alice.email).home === "e2", "the switch");
  await cluster.operate("node", "drain", "n1", "-to_engine", "-yes");
  assert.equal(cluster.place(bob.email).home, "e2");
  for (const [index, person] of [alice, bob].entries()) {
    await until(async () => (await person.grove("ls", "/tree")).code === 0, "ls");
    const back = join(folder, `back${index}`);
    await person.ok("get", "-r", "/tree", back);
    await run("diff", ["-r", tree, back]);
    assert.equal(await person.ok("quota", "--json"), before[index]);
  }
  await alice.ok("get", "/large", join(folder, "large-back"));
  await run("cmp", [large, join(folder, "large-back")]);
  await cluster.operate("node", "drain", "n1", "-confirm");
  await until(() => [alice, bob].every(({ email }) => cluster.place(email).state === ""), "the ends");
  assert.equal(await cluster.count("arrival"), 0);
  await mustBeSound(cluster);
  await own.end("SIGTERM");
  await checkData(own.data);
});
