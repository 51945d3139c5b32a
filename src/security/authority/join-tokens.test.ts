// Tests of one-time tokens: single use, also under concurrency, in time, for their id only, and stored
// hashed.
import assert from "node:assert/strict";
import { chown, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { JOIN_TOKEN_LIFETIME_MAX_MS } from "#base/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { JOIN_TOKENS_MAX, JoinTokens, parseJoinToken } from "./join-tokens.ts";

const FINGERPRINT = "ab".repeat(32);
const rejected = (error: unknown): boolean => isGroveError(error, "TOKEN_REJECTED");
const badArgument = (error: unknown): boolean => isGroveError(error, "BAD_ARGUMENT");

async function setUp(): Promise<{ folder: string; clock: ManualClock; tokens: JoinTokens }> {
  const folder = scratchFolder("join-tokens-");
  const clock = new ManualClock();
  return { folder, clock, tokens: new JoinTokens(folder, clock) };
}

test("a token is good once: of ten at the same time one gets it (D20)", async () => {
  const { tokens, folder, clock } = await setUp();
  const token = parseJoinToken(await tokens.make({ fingerprint: FINGERPRINT, id: "n1", lifetimeMs: 60_000 }));
  assert.equal(token.fingerprint, FINGERPRINT);
  assert.equal(token.id, "n1");
  assert.deepEqual(await tokens.check(token), { id: "n1", hosts: undefined });
  // Another process at the same folder.
  const beside = new JoinTokens(folder, clock);
  const uses = Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? tokens : beside).use(token));
  const outcomes = await Promise.allSettled(uses);
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
  for (const outcome of outcomes) if (outcome.status === "rejected") assert.ok(rejected(outcome.reason));
  await assert.rejects(tokens.check(token), rejected);
});

test("a token that root makes in a service's authority is one that the service can read", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async () => {
  const { tokens, folder } = await setUp();
  await chown(folder, 64_242, 64_243);
  await tokens.make({ fingerprint: FINGERPRINT, id: "n1", lifetimeMs: 60_000 });
  const [name = ""] = await readdir(join(folder, "tokens"));
  for (const path of [join(folder, "tokens"), join(folder, "tokens", name)]) {
    const { uid, gid } = await stat(path);
    assert.deepEqual([uid, gid], [64_242, 64_243], path);
  }
});

test("a token ends at its time, and a wrong secret, an unknown selector and a used one are answered alike", async () => {
  const { tokens, clock } = await setUp();
  const token = parseJoinToken(
    await tokens.make({ fingerprint: FINGERPRINT, id: undefined, lifetimeMs: 60_000 }),
  );
  clock.advance(59_999);
  assert.deepEqual(await tokens.check(token), { id: undefined, hosts: undefined });
  const texts = new Set<string>();
  const note = async (shown: { selector: string; secret: string }): Promise<void> => {
    await assert.rejects(tokens.check(shown), (error) => {
      assert.ok(rejected(error));
      texts.add((error as Error).message);
      return true;
    });
  };
  await note({ ...token, secret: `${token.secret.slice(0, -1)}${token.secret.endsWith("A") ? "B" : "A"}` });
  await note({ ...token, selector: "0".repeat(16) });
  clock.advance(1);
  await note(token);
  assert.equal(texts.size, 1);
});

test("the folder holds the hash of a token and not the token, for its owner alone", async () => {
  const { tokens, folder } = await setUp();
  const token = parseJoinToken(
    await tokens.make({ fingerprint: FINGERPRINT, id: undefined, lifetimeMs: 1_000 }),
  );
  const [name = ""] = await readdir(join(folder, "tokens"));
  const text = await readFile(join(folder, "tokens", name), "utf8");
  assert.ok(!text.includes(token.secret));
  const { stat } = await import("node:fs/promises");
  assert.equal((await stat(join(folder, "tokens", name))).mode & 0o777, 0o600);
  assert.equal((await stat(join(folder, "tokens"))).mode & 0o777, 0o700);
});

test("what is no token is refused without a word of it; lives beyond a week and ids that are none are refused", async () => {
  const { tokens } = await setUp();
  const good = await tokens.make({ fingerprint: FINGERPRINT, id: undefined, lifetimeMs: 1_000 });
  for (const text of [
    "",
    "gjt_",
    good.slice(1),
    `${good}.N1`,
    `${good}.../x`,
    "x".repeat(10_000),
    `${good}\n${good}`,
  ]) {
    assert.throws(
      () => parseJoinToken(text),
      (error) => badArgument(error) && !(error as Error).message.includes(text === "" ? "\0" : text),
    );
  }
  assert.equal(parseJoinToken(`  ${good}\n`).fingerprint, FINGERPRINT);
  const order = { fingerprint: FINGERPRINT, id: undefined };
  await tokens.make({ ...order, lifetimeMs: JOIN_TOKEN_LIFETIME_MAX_MS });
  await assert.rejects(tokens.make({ ...order, lifetimeMs: JOIN_TOKEN_LIFETIME_MAX_MS + 1 }), badArgument);
  await assert.rejects(tokens.make({ ...order, lifetimeMs: 0 }), badArgument);
  await assert.rejects(tokens.make({ ...order, id: "../x", lifetimeMs: 1 }), badArgument);
});

test("ended tokens make room for new ones; more than a thousand do not wait", async () => {
  const { tokens, folder, clock } = await setUp();
  await tokens.make({ fingerprint: FINGERPRINT, id: undefined, lifetimeMs: 1_000 });
  const { copyFile } = await import("node:fs/promises");
  const [first = ""] = await readdir(join(folder, "tokens"));
  for (let index = 1; index < JOIN_TOKENS_MAX; index++) {
    const name = `${index.toString(16).padStart(16, "0")}.json`;
    await copyFile(join(folder, "tokens", first), join(folder, "tokens", name));
  }
  const order = { fingerprint: FINGERPRINT, id: undefined, lifetimeMs: 1_000 };
  await assert.rejects(tokens.make(order), (error) => isGroveError(error, "OVERLOADED"));
  clock.advance(1_000);
  await tokens.make(order);
  assert.equal((await readdir(join(folder, "tokens"))).length, 1);
});
