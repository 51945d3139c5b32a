// Ended grants: the newest ones stay against late messages, and what is older is forgotten.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { openDirectory } from "./open-directory.ts";
import { ENDED_GRANTS_KEPT } from "./store-commands.ts";
import { MOCK, registration } from "./store-under-test.fixture.ts";

test("who shares and ends it for ever keeps the store at so many rows, and nothing ended comes back", async (t) => {
  const path = join(scratchFolder("grants-"), "meta.db");
  const directory = await openDirectory(`sqlite:${path}`, { clock: new ManualClock() });
  t.after(() => directory.close());
  const { epoch } = await directory.register(registration("a"));
  const node = { fsId: "a", epoch, speaker: MOCK };
  const rows = new DatabaseSync(path);
  t.after(() => rows.close());
  const count = (of: string): unknown =>
    rows.prepare(`SELECT COUNT(*) AS count FROM grants WHERE ${of}`).get()?.["count"];
  const owners = ["alice@example.com", "bob@example.com"];
  for (const owner of owners) {
    await directory.claimRoot(owner, node);
    rows.exec(
      `WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 11000)
       INSERT INTO grants (owner, user, path, version, granted) SELECT '${owner}', 'v@x.de', '/' || at, at, 0 FROM n`,
    );
  }
  const change = (at: number, version: number, granted: boolean): Promise<boolean> =>
    directory.setGrant({
      owner: "alice@example.com",
      path: `/${at}`,
      user: "v@x.de",
      version: BigInt(version),
      granted,
      node,
    });
  await change(20_000, 11_001, true);
  assert.equal(count("owner = 'alice@example.com'"), 11_001);
  await change(11_002, 11_002, false);
  assert.equal(count("owner = 'alice@example.com' AND granted = 0"), ENDED_GRANTS_KEPT);
  // Those that go on, and other people's, stay.
  assert.equal(count("granted = 1"), 1);
  assert.equal(count("owner = 'bob@example.com'"), 11_000);
  // A message that was on its way for long is older than the end.
  assert.equal(await change(2_000, 1_999, true), false);
  assert.equal(count("version < 1000 AND owner = 'alice@example.com'"), 0);
});
