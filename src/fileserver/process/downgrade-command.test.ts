// Tests what `grove downgrade` says of users whom the older Grove would let in again.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openTestStorage } from "#storage/local/store.fixture.ts";
import { runGrove } from "#testing/run-grove.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";

const decision = (username: string, disabled: boolean): object => ({
  username,
  disabled,
  closesShares: false,
  version: 1,
  reason: "has left",
  setBy: "administrator",
  setAtMs: 1,
  tokensFromMs: 0,
  issuer: "",
  subject: "",
});

test("users who are locked out are named before a release starts that knows nothing of it; a damaged list refuses", async (context) => {
  const data = temporaryDirectory(context);
  await (await openTestStorage(data)).close();
  const states = join(data, "user_states.json");
  writeFileSync(states, "{");
  const refused = await runGrove(["downgrade", "-data", data, "-to", "0.1.0"]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.err, /nobody knows who is locked out/);
  const users = [decision("dave@example.com", true), decision("erin@example.com", false)];
  writeFileSync(states, JSON.stringify({ schema: 1, users }));
  const back = await runGrove(["downgrade", "-data", data, "-to", "0.1.0"]);
  assert.equal(back.code, 0, back.err);
  assert.match(
    back.out,
    /knows nothing of users who are locked out, and lets them in: .* \(dave@example\.com\)\.$/m,
  );
});
