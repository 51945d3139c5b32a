// Tests the sources of the operator's password, and a change of it under a running console (W-04).
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { passwordHashes } from "./hash-password.ts";
import { OperatorPassword } from "./operator-password.ts";

test("a file is read again on request; what cannot be read, or is empty, changes nothing", async () => {
  const folder = scratchFolder("password-");
  const file = join(folder, "hash");
  const [one, two] = [adminPasswordHash("one"), adminPasswordHash("two")];
  const isBad = (error: unknown): boolean => isGroveError(error, "BAD_ARGUMENT");
  await assert.rejects(OperatorPassword.open({ env: {}, file }), isBad);

  await writeFile(file, `${one}\n`, { mode: 0o600 });
  const password = await OperatorPassword.open({ env: { ADMIN_PASSWORD_HASH: two }, file });
  assert.equal(await password.matches(one), true);
  assert.equal(await password.reload(), false);

  for (const text of ["", "\n", "nonsense\n"]) {
    await writeFile(file, text);
    await assert.rejects(password.reload(), isBad);
    assert.equal(await password.matches(one), true);
  }
  await writeFile(file, `${two}\n`);
  await chmod(file, 0o644);
  await assert.rejects(password.reload(), isBad);
  await chmod(file, 0o600);
  assert.equal(await password.reload(), true);
  assert.equal(await password.matches(one), false);
  assert.equal(await password.matches(two), true);
  assert.equal(password.isDefault, false);
});

test("what nodes are asked with is known where the SHA-256 or the password itself is configured, and not from Argon2", async () => {
  const sha256 = adminPasswordHash("a password");
  for (const [env, nodeHash] of [
    [{ ADMIN_PASSWORD_HASH: ` ${sha256.toUpperCase()}` }, sha256],
    [{ ADMIN_PASSWORD: "a password" }, sha256],
    [{ ADMIN_PASSWORD_HASH: passwordHashes("a password of the tests").argon2 }, ""],
    [{}, ""],
  ] as const) {
    assert.equal((await OperatorPassword.open({ env, file: undefined })).nodeHash, nodeHash);
  }
});

test("without anything the built-in one is in force (T10)", async () => {
  const password = await OperatorPassword.open({ env: {}, file: undefined });
  assert.equal(password.isDefault, true);
  assert.equal(await password.matches(adminPasswordHash("admin")), true);
});
