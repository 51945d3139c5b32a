// Tests and measures how long a root is frozen at its switch, under put -r and get -r of two users.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { until } from "#testing/until.ts";
import { startMovingCluster } from "./moving-cluster.ts";

/** A large root: GROVE_E2E_FILES=100000 GROVE_E2E_MB=20000 node --test tests/e2e/large-root-move.test.ts */
const FILES = Number(process.env["GROVE_E2E_FILES"] ?? 400);
const MEGABYTES = Number(process.env["GROVE_E2E_MB"] ?? 40);
const FROZEN_MAX_MS = 5_000;
const TIMEOUT_MS = 240_000 + FILES * 50 + MEGABYTES * 500;
const run = promisify(execFile);

/** Folders of 500 small files, and files of 8 MB that are no holes. */
async function makeTree(folder: string, files: number, megabytes: number): Promise<void> {
  for (let made = 0; made < files; made += 500) {
    const inner = join(folder, `d${made / 500}`);
    await mkdir(inner, { recursive: true });
    const some = Array.from({ length: Math.min(500, files - made) }, (_, index) => index);
    await Promise.all(
      some.map((index) => writeFile(join(inner, `f${index}`), `${made + index} `.repeat(20))),
    );
  }
  await mkdir(join(folder, "large"), { recursive: true });
  for (let made = 0; made < megabytes; made += 8) {
    await writeFile(join(folder, "large", `l${made}`), randomBytes(8_000_000));
  }
}

test("a root with many files is frozen under five seconds while two users put and get", {
  timeout: TIMEOUT_MS,
}, async (t: TestContext) => {
  const cluster = await startMovingCluster(t);
  const { folder } = cluster;
  const [alice, bob] = [await cluster.signIn("alice"), await cluster.signIn("bob")];
  const [tree, more] = [join(folder, "tree"), join(folder, "more")];
  await makeTree(tree, FILES, MEGABYTES);
  await makeTree(more, Math.ceil(FILES / 20), Math.ceil(MEGABYTES / 20));
  await alice.ok("put", "-r", tree, "/");
  await alice.ok("share", "/tree", bob.email);
  const source = cluster.homeOf(alice);
  const target = source === "n1" ? "n2" : "n1";
  const begunMs = performance.now();
  const put = alice.start("put", "-r", more, "/");
  const get = bob.start("get", "-r", `${alice.email}:/tree`, join(folder, "by-bob"));
  await cluster.move(alice.email, "-to", target);
  // From the freeze that the store knows until the target serves, or the attempt was taken back.
  let frozenAtMs: number | undefined;
  let longestMs = 0;
  for (let isOver = false; !isOver; ) {
    const seen = cluster.seen(alice);
    const nowMs = performance.now();
    const isFrozen = seen?.state === "frozen" || (seen?.state === "switched" && seen.atTarget !== "arrived");
    if (isFrozen) frozenAtMs ??= nowMs;
    else if (frozenAtMs !== undefined) {
      longestMs = Math.max(longestMs, nowMs - frozenAtMs);
      frozenAtMs = undefined;
    }
    isOver = seen === undefined || (seen.state === "switched" && seen.atTarget === "arrived");
    await sleep(10);
  }
  t.diagnostic(
    `${FILES} files, ${MEGABYTES} MB: moved in ${Math.round(performance.now() - begunMs)} ms, frozen for ${Math.round(longestMs)} ms at most`,
  );
  for (const program of [put, get]) {
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, stderr);
  }
  assert.equal(cluster.homeOf(alice), target);
  assert.ok(longestMs < FROZEN_MAX_MS, `frozen for ${longestMs} ms`);
  await run("diff", ["-r", tree, join(folder, "by-bob")]);
  await rm(join(folder, "by-bob"), { recursive: true });
  await alice.ok("get", "-r", "/more", join(folder, "more-back"));
  await run("diff", ["-r", more, join(folder, "more-back")]);
  await alice.ok("get", "-r", "/tree", join(folder, "back"));
  await run("diff", ["-r", tree, join(folder, "back")]);
  await cluster.move(alice.email, "-confirm");
  await until(() => cluster.seen(alice) === undefined, "the end of the move");
  await cluster.stop();
  await rm(folder, { recursive: true, force: true });
});
