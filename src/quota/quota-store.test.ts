// The quota store on a real disk: exact to 64 bits, changed durably, and never silently back to the default.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import fc from "fast-check";
import { GroveError, isGroveError } from "#base/errors.ts";
import { DEFAULT_QUOTA_BYTES, U64_MAX } from "#base/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { QUOTA_FILE, QUOTA_SETS_WAITING, QuotaStore, quotaFileProblem } from "./quota-store.ts";

let folder = "";
beforeEach(async () => {
  folder = scratchFolder("grove-quota-");
});

const file = () => join(folder, QUOTA_FILE);
const open = () => QuotaStore.open({ dataFolder: folder });
const reread = async () => JSON.parse(await readFile(file(), "utf8")) as { quotas: Record<string, unknown> };

test("a user without an entry has 16 GiB, and it says so (spec 2.1)", async () => {
  const store = await open();
  assert.deepEqual(store.quotaOf("a@b.c"), { bytes: 17_179_869_184n, source: "default" });
  assert.equal(DEFAULT_QUOTA_BYTES, 17_179_869_184n);
  assert.deepEqual(await readdir(folder), []);
});

test("a quota is in quota_config.json when set resolves, and in force after a restart (spec 2.1, D6)", async () => {
  const store = await open();
  await store.set("a@b.c", { quotaBytes: 5n });
  assert.deepEqual((await reread()).quotas, { "a@b.c": 5 });
  assert.deepEqual((await open()).quotaOf("a@b.c"), { bytes: 5n, source: "explicit" });
});

test("zero removes the entry, and a stored zero is an absent one (spec 2.1, T23)", async () => {
  await writeFile(file(), '{"quotas":{"zero@b.c":0,"one@b.c":1}}');
  const store = await open();
  assert.equal(store.quotaOf("zero@b.c").source, "default");
  await store.set("one@b.c", { quotaBytes: 0n });
  assert.deepEqual((await reread()).quotas, {});
  assert.equal(store.quotaBytes("one@b.c"), DEFAULT_QUOTA_BYTES);
});

test("all 64 bits survive the file: numbers up to 2^53 - 1, strings above (T17)", async () => {
  const values = [1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, U64_MAX];
  const store = await open();
  for (const value of values) {
    await store.set("a@b.c", { quotaBytes: value });
    assert.equal((await open()).quotaBytes("a@b.c"), value);
  }
  assert.deepEqual((await reread()).quotas, { "a@b.c": "18446744073709551615" });
  await writeFile(file(), '{"quotas":{"a@b.c":18446744073709551615,"b@b.c":"9007199254740993"}}');
  const exact = await open();
  assert.equal(exact.quotaBytes("a@b.c"), U64_MAX);
  assert.equal(exact.quotaBytes("b@b.c"), 9_007_199_254_740_993n);
});

test("a quota outside 64 bits is refused and nothing is written", async () => {
  const store = await open();
  for (const value of [-1n, U64_MAX + 1n]) {
    await assert.rejects(store.set("a@b.c", { quotaBytes: value }), (error) =>
      isGroveError(error, "BAD_ARGUMENT"),
    );
  }
  assert.deepEqual(await readdir(folder), []);
});

test("sets at the same time all arrive, one after another", async () => {
  const store = await open();
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => store.set(`u${i}@b.c`, { quotaBytes: BigInt(i + 1) })),
  );
  const again = await open();
  for (let i = 0; i < 40; i++) assert.equal(again.quotaBytes(`u${i}@b.c`), BigInt(i + 1));
});

test("one set too many waiting is refused, and those before it still arrive", async () => {
  const held = Promise.withResolvers<void>();
  const store = await QuotaStore.open({ dataFolder: folder, replaceFile: () => held.promise });
  const waiting = Array.from({ length: QUOTA_SETS_WAITING }, () => store.set("a@b.c", { quotaBytes: 7n }));
  await assert.rejects(store.set("a@b.c", { quotaBytes: 8n }), (error) => isGroveError(error, "OVERLOADED"));
  held.resolve();
  await Promise.all(waiting);
  assert.equal(store.quotaBytes("a@b.c"), 7n);
});

const DAMAGED = [
  "",
  "{",
  "null",
  "[]",
  "7",
  '"x"',
  "{}",
  '{"quotas":null}',
  '{"quotas":[]}',
  '{"quotas":{"a@b.c":-1}}',
  '{"quotas":{"a@b.c":1.5}}',
  '{"quotas":{"a@b.c":18446744073709551616}}',
  '{"quotas":{"a@b.c":"12GiB"}}',
  '{"quotas":{"a@b.c":null}}',
  '{"quotas":{"":1}}',
  '{"quotas":{"a@b.c":1,"A@B.C":2}}',
  '{"schema":"1","quotas":{}}',
  '{"quotas":{},"inode_limits":null}',
  '{"quotas":{},"inode_limits":[]}',
  '{"schema":2,"quotas":{},"inode_limits":{"a@b.c":-1}}',
  '{"schema":2,"quotas":{},"inode_limits":{"a@b.c":4294967296}}',
  '{"schema":2,"quotas":{},"inode_limits":{"a@b.c":1,"A@b.c":1}}',
  "\u0000\u0000\u0000\u0000",
  "[".repeat(100_000),
];

test("a damaged file gives way to the generation before it, and is kept aside (A-10)", async () => {
  const store = await open();
  await store.set("a@b.c", { quotaBytes: 5n });
  await store.set("a@b.c", { quotaBytes: 6n });
  for (const text of DAMAGED) {
    await writeFile(file(), text);
    const reasons: string[] = [];
    const recovered = await QuotaStore.open({
      dataFolder: folder,
      onRecovered: (reason) => reasons.push(reason),
    });
    assert.equal(recovered.quotaBytes("a@b.c"), 5n, JSON.stringify(text.slice(0, 40)));
    assert.equal(reasons.length, 1);
    assert.equal(await readFile(`${file()}.corrupt`, "utf8"), text);
    assert.equal((await open()).quotaBytes("a@b.c"), 5n);
  }
});

test("without a good generation the store refuses to open instead of giving everybody the default (A-10)", async () => {
  for (const text of DAMAGED) {
    await writeFile(file(), text);
    await assert.rejects(
      open(),
      (error) => isGroveError(error, "CORRUPT"),
      JSON.stringify(text.slice(0, 40)),
    );
    assert.equal(await readFile(file(), "utf8"), text);
  }
});

test("a file cut off at any byte never opens as other quotas than one of the two generations (A-10)", async () => {
  const store = await open();
  await store.set("a@b.c", { quotaBytes: 5n });
  await store.set("a@b.c", { quotaBytes: 123_456_789n });
  const whole = await readFile(file(), "utf8");
  for (let length = 0; length < whole.length; length++) {
    await writeFile(file(), whole.slice(0, length));
    const bytes = (await open()).quotaBytes("a@b.c");
    assert.ok(bytes === 5n || bytes === 123_456_789n, `cut at ${length}: ${bytes}`);
  }
});

test("an inode limit is set beside the quota, and either stays as it is when only the other is set", async () => {
  const store = await QuotaStore.open({ dataFolder: folder, defaultInodeLimit: 50 });
  assert.deepEqual(store.inodeLimitOf("a@b.c"), { inodes: 50, source: "default" });
  assert.equal(store.inodeLimit("a@b.c"), 50);
  await store.set("a@b.c", { quotaBytes: 5n, inodeLimit: 7 });
  assert.deepEqual(store.inodeLimitOf("a@b.c"), { inodes: 7, source: "explicit" });
  await store.set("a@b.c", { quotaBytes: 6n });
  await store.set("b@b.c", { inodeLimit: 2 ** 32 - 1 });
  const again = await open();
  assert.deepEqual([again.quotaBytes("a@b.c"), again.inodeLimit("a@b.c")], [6n, 7]);
  assert.deepEqual(again.quotaOf("b@b.c"), { bytes: DEFAULT_QUOTA_BYTES, source: "default" });
  assert.equal(again.inodeLimit("b@b.c"), 4_294_967_295);
  await again.set("a@b.c", { inodeLimit: 0 });
  assert.deepEqual((await open()).inodeLimitOf("a@b.c"), { inodes: 10_000_000, source: "default" });
  assert.equal((await open()).quotaBytes("a@b.c"), 6n);
});

test("an inode limit outside 32 bits is refused and nothing is written", async () => {
  const store = await open();
  for (const inodeLimit of [-1, 2 ** 32, 1.5, Number.NaN]) {
    await assert.rejects(store.set("a@b.c", { inodeLimit }), (error) => isGroveError(error, "BAD_ARGUMENT"));
  }
  assert.deepEqual(await readdir(folder), []);
});

test("the file has the older schema as long as that holds everything, so that an older Grove opens it (D18)", async () => {
  const schema = async () => (JSON.parse(await readFile(file(), "utf8")) as { schema: number }).schema;
  const store = await open();
  await store.set("a@b.c", { quotaBytes: 5n });
  assert.equal(await schema(), 1);
  await store.set("a@b.c", { inodeLimit: 7 });
  assert.equal(await schema(), 2);
  await store.set("a@b.c", { inodeLimit: 0 });
  assert.equal(await schema(), 1);
  assert.equal((await open()).quotaBytes("a@b.c"), 5n);
});

test("a newer schema is refused and left alone (D18)", async () => {
  const text = '{"schema":3,"quotas":{"a@b.c":5}}';
  await writeFile(file(), text);
  await assert.rejects(open(), (error) => isGroveError(error, "BAD_ARGUMENT") && /newer/.test(error.message));
  assert.equal(await readFile(file(), "utf8"), text);
});

test("a user called __proto__ is a user like any other (A-10)", async () => {
  await writeFile(file(), '{"quotas":{"__proto__":5,"constructor":6}}');
  const store = await open();
  assert.equal(store.quotaBytes("__proto__"), 5n);
  assert.equal(store.quotaBytes("tostring"), DEFAULT_QUOTA_BYTES);
  await store.set("constructor", { quotaBytes: 7n });
  const again = await open();
  assert.equal(again.quotaBytes("__proto__"), 5n);
  assert.equal(again.quotaBytes("constructor"), 7n);
});

test("a full disk refuses the set, leaves the old quota in force, and the next set may succeed (A-07)", async () => {
  let isFull = true;
  const store = await QuotaStore.open({
    dataFolder: folder,
    replaceFile: () =>
      isFull ? Promise.reject(Object.assign(new Error("no space"), { code: "ENOSPC" })) : Promise.resolve(),
  });
  await assert.rejects(store.set("a@b.c", { quotaBytes: 5n }), (error) =>
    isGroveError(error, "STORAGE_FAILED"),
  );
  assert.equal(store.quotaBytes("a@b.c"), DEFAULT_QUOTA_BYTES);
  isFull = false;
  await store.set("a@b.c", { quotaBytes: 5n });
  assert.equal(store.quotaBytes("a@b.c"), 5n);
});

test("after a failed flush no set is tried again, and the old quotas stay in force (A-06)", async () => {
  let tries = 0;
  const store = await QuotaStore.open({
    dataFolder: folder,
    replaceFile: () => {
      tries++;
      return Promise.reject(new GroveError("STORAGE_FAILED", "cannot flush"));
    },
  });
  for (let i = 0; i < 3; i++) {
    await assert.rejects(store.set("a@b.c", { quotaBytes: 5n }), (error) =>
      isGroveError(error, "STORAGE_FAILED"),
    );
  }
  assert.equal(tries, 1);
  assert.equal(store.quotaBytes("a@b.c"), DEFAULT_QUOTA_BYTES);
});

test("whatever is set in whatever order is what a restart reads (spec 2.1)", async () => {
  const name = fc.constantFrom("a@b.c", "b@b.c", "__proto__@x.y", "ü@b.c");
  const bytes = fc.oneof(fc.constant(0n), fc.bigInt({ min: 1n, max: U64_MAX }));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(name, bytes), { maxLength: 6 }), async (sets) => {
      const store = await open();
      const model = new Map(store.entries());
      for (const [username, quota] of sets) {
        await store.set(username, { quotaBytes: quota });
        if (quota === 0n) model.delete(username);
        else model.set(username, quota);
      }
      assert.deepEqual(new Map((await open()).entries()), model);
    }),
    { numRuns: 15 },
  );
});

test("a missing file gives way to the generation before it, and says so (A-10)", async () => {
  await writeFile(`${file()}.previous`, '{"quotas":{"a@b.c":9}}');
  const reasons: string[] = [];
  const store = await QuotaStore.open({ dataFolder: folder, onRecovered: (reason) => reasons.push(reason) });
  assert.equal(store.quotaBytes("a@b.c"), 9n);
  assert.deepEqual(reasons, ["the file is missing"]);
  assert.deepEqual((await reread()).quotas, { "a@b.c": 9 });
  assert.ok(!(await readdir(folder)).some((name) => name.endsWith(".corrupt")));
});

test("where the only generation is a damaged one, nobody gets the default (A-10)", async () => {
  await writeFile(`${file()}.previous`, "{");
  await assert.rejects(
    open(),
    (error) => isGroveError(error, "CORRUPT") && error.message.includes("(missing) and neither"),
  );
});

test("a file that is there and cannot be read is no absent one (A-10)", async () => {
  await mkdir(file());
  await assert.rejects(open(), (error) => isGroveError(error, "STORAGE_FAILED"));
});

test("the check names a damaged file, leaves it as it is, and has nothing against none", async () => {
  assert.equal(await quotaFileProblem(folder), undefined);
  await writeFile(file(), '{"quotas":[]}');
  assert.equal(await quotaFileProblem(folder), `${file()} is damaged: it has no object "quotas"`);
  assert.equal(await readFile(file(), "utf8"), '{"quotas":[]}');
  await writeFile(file(), '{"quotas":{}}');
  assert.equal(await quotaFileProblem(folder), undefined);
});

test("what comes along with a root is in force, and is kept for other nodes even where it is known here", async () => {
  const kept: unknown[] = [];
  const share = async (username: string, change: object): Promise<void> => void kept.push([username, change]);
  const shared = await QuotaStore.open({ dataFolder: scratchFolder("quota-taken-"), share });
  const GIB = 2n ** 30n;
  const [quota, limit] = [
    { bytes: 5n * GIB, source: "explicit" },
    { inodes: 4_321, source: "explicit" },
  ] as const;
  await shared.take("ada@example.com", quota, limit);
  await shared.take("ada@example.com", quota, limit);
  const explicit = { quotaBytes: 5n * GIB, inodeLimit: 4_321 };
  // Another node may know an older quota than the default that came.
  const [usual, usualLimit] = [shared.quotaOf("bob@example.com"), shared.inodeLimitOf("bob@example.com")];
  await shared.take("bob@example.com", usual, usualLimit);
  assert.deepEqual(kept, [
    ["ada@example.com", explicit],
    ["ada@example.com", explicit],
    ["bob@example.com", { quotaBytes: 0n, inodeLimit: 0 }],
  ]);
  const own = await QuotaStore.open({ dataFolder: scratchFolder("quota-taken-") });
  await own.set("ada@example.com", { quotaBytes: 5n * GIB });
  await own.take("ada@example.com", usual, usualLimit);
  assert.deepEqual(own.quotaOf("ada@example.com"), { bytes: DEFAULT_QUOTA_BYTES, source: "default" });
});
