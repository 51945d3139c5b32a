// `grove node lost` as people type it, on the store of a cluster that waits for nodes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "#base/clock.ts";
import { openDirectory } from "#directory/open-directory.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";

const GROVE = fileURLToPath(new URL("../bin/grove.ts", import.meta.url));

async function lost(...words: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [GROVE, "node", "lost", ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    out += String(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    err += String(chunk);
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

test("nodes that new users wait for are shown, and one is given up beside the MetaServer that uses the store", {
  timeout: 60_000,
}, async (t) => {
  const store = `sqlite:${join(scratchFolder("metaserver-"), "metadata.db")}`;
  const directory = await openDirectory(store, { clock: systemClock });
  t.after(() => directory.close());
  await directory.awaitNodes(["n2", "n7"]);
  assert.deepEqual(await lost("-meta", store), { code: 0, out: "New users wait for n2, n7.\n", err: "" });
  const given = await lost("n7", "-meta", store);
  assert.equal(given.code, 0, given.err);
  assert.match(
    given.out,
    /^n7 is given up: users whose roots it holds get new, empty ones.*\nNew users wait for n2\.\n$/,
  );
  assert.deepEqual(await directory.missingLists(), { awaited: ["n2"], givenUp: ["n7"] });
  const shown = await lost("-meta", store, "-json");
  assert.deepEqual(JSON.parse(shown.out), { awaited: ["n2"], given_up: ["n7"] });
  const unknown = await lost("n9", "-meta", store);
  assert.notEqual(unknown.code, 0);
  assert.match(unknown.err, /n9 is no node/);
  assert.match((await lost("NOT-AN-ID", "-meta", store)).err, /a node id has/);
});
