// Whole folders in transfer while a node restarts, and while the client itself is killed.
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { haltOnce } from "#e2e/halted-program.ts";
import type { Job } from "./job.ts";
import { type Site, statusUrl } from "./site.ts";
import { assertSame, filesOf, makeTree } from "./tree.ts";

/** `npm run tuesday` moves 2 GB in 20,000 files; the tests move less. */
const MOVING_IN = {
  files: Number(process.env["GROVE_TUESDAY_FILES"] ?? 600),
  bytes: Number(process.env["GROVE_TUESDAY_BYTES"] ?? 30_000_000),
};
const UNDER_RESTART = { files: 400, bytes: 60_000_000 };

/** Writing operations of n1 since its start: at least one a file. */
async function writesOf(site: Site): Promise<number> {
  const answer = await fetch(statusUrl(site.node("n1").place, "/metrics"));
  return ((await answer.json()) as { write_ops_total: number }).write_ops_total;
}

/** A restart of the node during a transfer costs one line on the screen. */
export const restarts: Job = {
  title:
    "put -r and get -r go on by themselves under a restart and a kill of the node, say so, and every byte is right",
  async run(site) {
    const alice = site.person("alice");
    const node = site.node("n1");
    const tree = join(site.folder, "photos");
    await makeTree(tree, UNDER_RESTART);
    const before = await writesOf(site);
    const sending = alice.start("put", "-r", tree, "/photos");
    await haltOnce(sending, async () => (await writesOf(site)) > before + 60);
    const stopped = node.stop();
    sending.child.kill("SIGCONT");
    assert.equal(await stopped, 0);
    await node.start();
    const sent = await sending.ended;
    assert.equal(sent.code, 0, sent.stderr);
    assert.match(sent.stderr, /Trying again in [\d.]+ s, and for \d+ s more/);
    const back = join(site.folder, "photos-back");
    const fetching = alice.start("get", "-r", "/photos", back);
    await haltOnce(fetching, async () => (await filesOf(back)).length > 60);
    await node.stop("SIGKILL");
    fetching.child.kill("SIGCONT");
    await node.start();
    const fetched = await fetching.ended;
    assert.equal(fetched.code, 0, fetched.stderr);
    assert.match(fetched.stderr, /Trying again in/);
    assert.equal(await assertSame(tree, back), UNDER_RESTART.files);
    await rm(back, { recursive: true });
  },
};

/** Killed twice, the same command resumes; the same again with --update sends nothing. */
export const movingIn: Job = {
  title:
    "a folder whose upload is killed twice goes on by the same command and says from where; unchanged, nothing is sent",
  async run(site) {
    const alice = site.person("alice");
    const tree = join(site.folder, "moving");
    await makeTree(tree, MOVING_IN);
    const words = ["put", "-r", tree, "/moved"];
    for (let kills = 0; kills < 2; kills++) {
      const begun = await writesOf(site);
      const sending = alice.start(...words);
      await haltOnce(sending, async () => (await writesOf(site)) > begun + MOVING_IN.files * 0.3);
      sending.child.kill("SIGKILL");
      await sending.ended;
    }
    const last = await alice.run(...words);
    assert.equal(last.code, 0, last.stderr);
    assert.match(last.stderr, /moving: going on in \/moved, where the upload of \S+ \S+ was cut/);
    assert.match(last.stderr, /uploaded [\d,]+ files?, .*, [\d,]+ files there already/);
    const again = JSON.parse(await alice.ok("put", "--json", "-r", "--update", tree, "/moved")) as {
      files: number;
      unchanged: number;
    };
    assert.deepEqual([again.files, again.unchanged], [0, MOVING_IN.files]);
    const back = join(site.folder, "moved-back");
    await alice.ok("get", "-r", "/moved", back);
    assert.equal(await assertSame(tree, back), MOVING_IN.files);
  },
};
