// Tests that the console and FileServers accept the output of `grove admin hash-password` (T11, W-01).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { createAdminPassword } from "#security/identity/admin-password.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";

function hashPassword(input: string, ...flags: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [GROVE_ENTRY, "admin", "hash-password", ...flags],
    {
      input,
      encoding: "utf8",
    },
  );
  return { code: status, out: stdout, err: stderr };
}

test("both forms are of the password on standard input, and either lets it in", async () => {
  const { code, out } = hashPassword("fifteen letters\nanother line\n");
  assert.equal(code, 0);
  const [argon2 = "", sha256 = ""] = out.split("\n");
  assert.match(argon2, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.match(sha256, /^[0-9a-f]{64}$/);
  for (const configured of [argon2, sha256]) {
    assert.equal(
      await createAdminPassword({ ADMIN_PASSWORD_HASH: configured }).verifyHashHeader(sha256),
      true,
    );
  }
  assert.equal(hashPassword("fifteen letters", "-sha256").out, `${sha256}\n`);
});

test("a password of 14 characters is refused, and never shown", () => {
  const { code, out, err } = hashPassword("fourteen chars\n");
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(err, /at least 15 characters/);
  assert.equal(err.includes("fourteen"), false);
});
