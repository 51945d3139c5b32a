// `grove node lost` on the command line, on the store of a cluster that waits for nodes.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { command } from "./node-command.ts";

const lost = (...words: string[]): Promise<Outcome> => commandHere(command, ["lost", ...words]);

test("nodes that new users wait for are shown, and one is given up beside the MetaServer that uses the store", {
  timeout: 60_000,
}, async (t) => {
  const store = `sqlite:${join(scratchFolder("metaserver-"), "metadata.db")}`;
  const directory = await openDirectory(store, { clock: systemClock });
  t.after(() => directory.close());
  await directory.awaitNodes(["n2", "n7"]);
  assert.deepEqual(await lost("-meta", store), { code: 0, out: "New users wait for n2, n7.\n", err: "" });
  const given = await runGrove(["node", "lost", "n7", "-meta", store]);
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
