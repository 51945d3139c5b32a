// Tests of how commands are put into transactions.
import assert from "node:assert/strict";
import { join } from "node:path";
import { StatementSync } from "node:sqlite";
import { test } from "node:test";
import type { Command } from "#storage/writer/write-commands.ts";
import { type NumberedCommands, Writer } from "#storage/writer/writer.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { openTestStorage } from "./store.fixture.ts";

test("an arrival in a batch has a transaction of its own, those before it share one, and those after it too", async (context) => {
  const directory = temporaryDirectory(context);
  await (await openTestStorage(directory)).close();
  const writer = new Writer({
    databasePath: join(directory, "inodes.db"),
    ballastPath: join(directory, "ballast"),
    ballastBytes: 0,
  });
  context.after(() => writer.close("checkpoint"));
  const folder = (name: string): Command => ({ op: "openChunkDirectory", directory: name });
  // Nothing of a move that nobody knows is left to drop.
  const arrival: Command = { op: "dropImport", moveId: "01J0000000000000000000000M" };
  const commands = [folder("a1"), folder("a2"), folder("a3"), arrival, folder("a4"), folder("a5"), arrival];
  const batch: NumberedCommands = commands.map((command, index) => [index, command]);
  const run = context.mock.method(StatementSync.prototype, "run");
  const replies = writer.run(batch);
  const commits = run.mock.calls.filter(
    ({ this: statement }) => (statement as StatementSync).sourceSQL === "COMMIT",
  );
  assert.equal(commits.length, 4);
  assert.deepEqual(
    replies.map(([number]) => number),
    batch.map(([number]) => number),
  );
  assert.deepEqual(
    replies.filter(([, answer]) => answer === false).map(([number]) => number),
    [3, 6],
  );
});
