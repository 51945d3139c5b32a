// Tests that quota, person and administrators' looks go along with a root, and count at its new node.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DEFAULT_QUOTA_BYTES } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { MovedProperties } from "#fileserver/moves/move-source.ts";
import { OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import { QuotaStore } from "#quota/quota-store.ts";
import { SubjectRegistry } from "#security/identity/subject-registry.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type PropertyDeps, propertiesOf, takeProperties } from "./moved-properties.ts";

const OWNER = "ada@example.com";
const ISSUER = "https://idp.example.com";

async function open(
  folder = scratchFolder("properties-"),
  clock = new ManualClock(5_000),
): Promise<PropertyDeps> {
  return {
    quotas: await QuotaStore.open({
      dataFolder: folder,
      defaultInodeLimit: 100,
      onRecovered: () => undefined,
    }),
    subjects: await SubjectRegistry.open(join(folder, "subjects.json")),
    operatorLooks: await OperatorLooks.open(folder, { clock, log: silentLogger }),
  };
}

/** What one node says, as the other one reads it. */
async function hand(from: PropertyDeps, to: PropertyDeps): Promise<void> {
  const said = JSON.stringify(propertiesOf(OWNER, from));
  await takeProperties(OWNER, JSON.parse(said) as MovedProperties, to);
}

test("quota, person and looks are there after the move, also after a restart, and taking them twice changes nothing", async () => {
  const from = await open();
  await from.quotas.set(OWNER, { quotaBytes: 77_000n });
  await from.quotas.set(OWNER, { inodeLimit: 42 });
  await from.subjects.rebind([{ username: OWNER, issuer: ISSUER, subject: "7", version: 3n }], () => true);
  await from.operatorLooks.add({ owner: OWNER, by: "op", reason: "ticket 4711", restored_path: "" });
  await from.operatorLooks.add({ owner: "bob@example.com", by: "op", reason: "another", restored_path: "" });
  const folder = scratchFolder("properties-");
  const to = await open(folder);
  await hand(from, to);
  await hand(from, to);
  const again = await open(folder);
  assert.deepEqual([again.quotas.quotaBytes(OWNER), again.quotas.inodeLimit(OWNER)], [77_000n, 42]);
  assert.deepEqual(again.subjects.find(OWNER), { issuer: ISSUER, subject: "7", version: 3n });
  assert.deepEqual(again.operatorLooks.of(OWNER), from.operatorLooks.of(OWNER));
  assert.deepEqual(again.operatorLooks.of("bob@example.com"), []);
});

test("a quota and a limit that were set at the defaults' values stay set after a move (spec 5.9)", async () => {
  const [from, to] = [await open(), await open()];
  await from.quotas.set(OWNER, { quotaBytes: DEFAULT_QUOTA_BYTES, inodeLimit: 100 });
  await hand(from, to);
  assert.deepEqual(to.quotas.quotaOf(OWNER), { bytes: DEFAULT_QUOTA_BYTES, source: "explicit" });
  assert.deepEqual(to.quotas.inodeLimitOf(OWNER), { inodes: 100, source: "explicit" });
  // Once they are taken back there, the defaults come along as such; a node of before tells no sources.
  await to.quotas.set(OWNER, { quotaBytes: 0n, inodeLimit: 0 });
  await hand(to, from);
  assert.deepEqual([...from.quotas.entries()], []);
  const { sources: _sources, ...said } = propertiesOf(OWNER, from);
  await takeProperties(OWNER, said, to);
  assert.equal(to.quotas.quotaOf(OWNER).source, "default");
});

test("what the new node knows of the person counts, unless an operator's word came later", async () => {
  const from = await open();
  const to = await open();
  const word = (subject: string, version: bigint) => ({ username: OWNER, issuer: ISSUER, subject, version });
  await from.subjects.rebind([word("old", 1n)], () => true);
  await to.subjects.rebind([word("new", 2n)], () => true);
  await hand(from, to);
  assert.equal(to.subjects.find(OWNER)?.subject, "new");
  await from.subjects.rebind([word("newest", 3n)], () => true);
  await hand(from, to);
  assert.equal(to.subjects.find(OWNER)?.subject, "newest");
});

test("looks of another user, too many of them or of no known form are left out, and those that are here stay", async () => {
  const [from, to] = [await open(), await open(undefined, new ManualClock(9_000))];
  await to.operatorLooks.add({ owner: OWNER, by: "op", reason: "here", restored_path: "" });
  const properties = propertiesOf(OWNER, from);
  const foreign = { owner: "bob@example.com", at_ms: 1, by: "op", reason: "x", restored_path: "" };
  const many = Array.from({ length: 21 }, (_, at_ms) => ({ ...foreign, owner: OWNER, at_ms }));
  for (const looks of [[foreign], many, "looks", undefined]) {
    await takeProperties(OWNER, { ...properties, looks }, to);
  }
  assert.deepEqual(
    to.operatorLooks.of(OWNER).map(({ reason }) => reason),
    ["here"],
  );
});
