// Tests of the administrator's password in each form of its configuration.
import assert from "node:assert/strict";
import { argon2Sync } from "node:crypto";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { adminPasswordHash, createAdminPassword } from "./admin-password.ts";

const HASH = adminPasswordHash("correct horse");

function argon2Text(message: string, { memory = 64, passes = 1 } = {}): string {
  const nonce = Buffer.from("0123456789abcdef");
  const tag = argon2Sync("argon2id", { message, nonce, memory, passes, parallelism: 1, tagLength: 32 });
  const text = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${text(nonce)}$${text(tag)}`;
}

test("the header's value must be the SHA-256 of the password, whichever way that is configured (spec 5.5, 5.8.1)", async () => {
  for (const settings of [
    { ADMIN_PASSWORD_HASH: HASH },
    { ADMIN_PASSWORD_HASH: HASH.toUpperCase() },
    { ADMIN_PASSWORD: "correct horse" },
    { ADMIN_PASSWORD_HASH: "", ADMIN_PASSWORD: "correct horse" },
    { ADMIN_PASSWORD_HASH: HASH, ADMIN_PASSWORD: "another" },
    { ADMIN_PASSWORD_HASH: argon2Text(HASH) },
  ]) {
    const password = createAdminPassword(settings);
    assert.equal(password.isDefault, false);
    assert.equal(await password.verifyHashHeader(HASH), true);
    assert.equal(await password.verifyHashHeader(HASH.toUpperCase()), true);
    for (const wrong of [
      "",
      "correct horse",
      HASH.slice(1),
      `${HASH}0`,
      `0${HASH.slice(1)}`,
      adminPasswordHash("another"),
      settings.ADMIN_PASSWORD_HASH?.startsWith("$") ? settings.ADMIN_PASSWORD_HASH : "x",
    ]) {
      assert.equal(await password.verifyHashHeader(wrong), false, wrong);
    }
  }
});

test("without a setting, or set to it, the built-in default is in force and says so (T10)", async () => {
  const admin = adminPasswordHash("admin");
  assert.equal(admin, "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918");
  for (const settings of [{}, { ADMIN_PASSWORD_HASH: admin }, { ADMIN_PASSWORD: "admin" }]) {
    const password = createAdminPassword(settings);
    assert.equal(password.isDefault, true);
    assert.equal(await password.verifyHashHeader(admin), true);
    assert.equal(await password.verifyHashHeader(HASH), false);
  }
});

test("a setting of neither form stops the start, without telling it (C-13)", () => {
  for (const value of [
    "correct horse",
    HASH.slice(1),
    `${HASH}0`,
    `${HASH.slice(1)}g`,
    "$argon2i$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA",
    "$argon2id$v=18$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA",
    "$argon2id$v=19$m=7,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA",
    "$argon2id$v=19$m=1048577,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA",
    "$argon2id$v=19$m=64,t=0,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA",
    "$argon2id$v=19$m=64,t=1,p=1$$",
    "$2b$10$abcdefghijklmnopqrstuv",
  ]) {
    assert.throws(
      () => createAdminPassword({ ADMIN_PASSWORD_HASH: value }),
      (error) => isGroveError(error, "BAD_ARGUMENT") && !error.message.includes(value),
    );
  }
});

test("a flood of Argon2 checks is cut off at 2 running and 32 waiting, and those are answered (W-03)", {
  timeout: 60_000,
}, async () => {
  const password = createAdminPassword({ ADMIN_PASSWORD_HASH: argon2Text(HASH, { memory: 1_024 }) });
  const answers = await Promise.allSettled(
    Array.from({ length: 40 }, async (_, at) =>
      password.verifyHashHeader(at % 2 === 0 ? HASH : adminPasswordHash("x")),
    ),
  );
  const refused = answers.filter((answer) => answer.status === "rejected");
  assert.equal(refused.length, 6);
  assert.ok(refused.every(({ reason }) => isGroveError(reason, "RATE_LIMITED")));
  for (const [at, answer] of answers.slice(0, 34).entries()) {
    assert.deepEqual(answer, { status: "fulfilled", value: at % 2 === 0 });
  }
  assert.equal(await password.verifyHashHeader(HASH), true);
});
