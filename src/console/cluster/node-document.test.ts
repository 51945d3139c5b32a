// The check of a node's document: honest ones keep all values, false ones lose some (M-05, D12, T8, T17).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentText, type FakeUser, fakeUsers } from "#base/fake-nodes.fixture.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import type { NodeReading } from "./cluster-state.ts";
import { CONSOLE_USERS_PER_NODE_FREE, NodeDocument, UserAllowance } from "./node-document.ts";
import { PollError } from "./poll-error.ts";
import { POLL_PIECE_BYTES } from "./user-part.ts";

const U64_MAX = 2n ** 64n - 1n;

test("an honest document keeps every value, counts of 64 bits exactly (spec 2.7, T17)", async () => {
  const users: FakeUser[] = [
    {
      name: "alice@example.com",
      usedBytes: 2n ** 53n + 1n,
      quotaBytes: U64_MAX,
      lastActiveUnix: 1_790_000_000,
    },
    { name: "bob@example.com", usedBytes: 0, lastActiveUnix: null },
  ];
  const reading = await read(
    documentText({ fields: { disk_total_bytes: U64_MAX, quota_drift_bytes: -5 }, users }),
  );
  assert.deepEqual(reading.invalidFields, []);
  assert.equal(reading.diskTotalBytes, U64_MAX);
  assert.equal(reading.quotaDriftBytes, -5n);
  assert.equal(reading.cpuTempCelsius, 45.5);
  assert.equal(reading.usersWithheld, false);
  assert.deepEqual(
    [...reading.perUserStorage],
    [
      ["alice@example.com", 2n ** 53n + 1n],
      ["bob@example.com", 0n],
    ],
  );
  assert.equal(reading.perUserQuota.get("alice@example.com"), U64_MAX);
  assert.equal(reading.perUserDetail.get("alice@example.com")?.liveBytes, 2n ** 53n + 1n);
  assert.equal(reading.perUserDetail.get("bob@example.com")?.lastActiveUnix, null);
});

test("integers above 2^53 that are written as plain numbers keep all digits, in single fields and in maps (T17)", async () => {
  const exact = "9007199254740993";
  const text = documentText({ users: [{ name: "a@example.com", usedBytes: 7_777 }] })
    .replace('"bytes_read_total":20000000', `"bytes_read_total":${exact}`)
    .replaceAll("7777", exact);
  const reading = await read(text);
  assert.equal(reading.bytesReadTotal, BigInt(exact));
  assert.equal(reading.perUserStorage.get("a@example.com"), BigInt(exact));
  assert.equal(reading.perUserDetail.get("a@example.com")?.liveBytes, BigInt(exact));
  assert.deepEqual(reading.invalidFields, []);
});

const LIES: Readonly<Record<string, readonly unknown[]>> = {
  disk_used_bytes: [-1, 1.5, 1e308, 2n ** 64n, "12GB", "-1", "01", {}, [], true, "18446744073709551616"],
  disk_usage_percent: [-0.01, 100.01, 1e308, "40", {}, [40], false],
  cpu_temp_celsius: [-300, 1e6, "45"],
  load_avg_1m: [-1, 1e9, "0.5"],
  uptime_seconds: [-1, 1e300, "1"],
  last_restart_unix: [-1, 1.5, 2n ** 53n],
  active_connections: [-1, 0.5, 2n ** 60n],
  op_latency_write_ms_p99: [-1, 1e300, "9"],
  version: ["", "a b", "\u001b[31m", "x".repeat(129), 7, "\u202e"],
  git_commit: ["xyz", "", 1, "G".repeat(40)],
  boot_id: ["", "a b", "x".repeat(65), "<script>"],
  storage_failed: [0, "false", "yes"],
  clock_skew_ms: ["0", 1e300],
  quota_drift_bytes: [1.5, "1e3", 2n ** 63n],
};

for (const [field, lies] of Object.entries(LIES)) {
  test(`${field}: a lie costs this field alone (M-05)`, async () => {
    const honest = await read(documentText({ users: [] }));
    for (const lie of lies) {
      const reading = await read(documentText({ fields: { [field]: lie }, users: [] }));
      assert.deepEqual(reading.invalidFields, [field], `lie: ${typeof lie} ${String(lie)}`);
      const changed = Object.entries(reading).filter(
        ([key, value]) =>
          JSON.stringify(text(value)) !== JSON.stringify(text(honest[key as keyof NodeReading])),
      );
      assert.deepEqual(
        changed.map(([, value]) => value as unknown),
        [null, [field]],
      );
    }
  });
}

test("numbers at the ends of their ranges are no lies", async () => {
  const fields = {
    disk_usage_percent: 100,
    cpu_usage_percent: 0,
    mem_usage_percent: 100,
    disk_free_bytes: "0",
  };
  const reading = await read(documentText({ fields, users: [] }));
  assert.deepEqual(reading.invalidFields, []);
  assert.equal(reading.diskUsagePercent, 100);
  assert.equal(reading.diskFreeBytes, 0n);
});

test("null is unknown and no lie; a missing field of spec 2.7 is told, a missing later one is an older node (D12, M-10)", async () => {
  const reading = await read(
    documentText({
      fields: { cpu_temp_celsius: null, load_avg_1m: undefined, boot_id: undefined },
      users: [],
    }),
  );
  assert.deepEqual(reading.invalidFields, ["load_avg_1m"]);
  assert.deepEqual([reading.cpuTempCelsius, reading.loadAvg1m, reading.bootId], [null, null, null]);
});

test("without maps of users they are withheld, which is no lie (T8); with one of two something is missing", async () => {
  const withheld = await read(documentText({}));
  assert.equal(withheld.usersWithheld, true);
  assert.deepEqual(withheld.invalidFields, []);
  const half = documentText({ users: [] }).replace(',"per_user_quota":{}', "");
  assert.deepEqual((await read(half)).invalidFields, ["per_user_quota"]);
  const spec27 = documentText({ users: [] }).replace(',"per_user_detail":{}', "");
  assert.deepEqual((await read(spec27)).invalidFields, [], "the third map is an addition");
});

test("an entry that is no user or has no valid value is left out, the others stay (M-05)", async () => {
  const users = [{ name: "good@example.com", usedBytes: 5 }];
  const bad = [
    '"Bad@Example.com":1',
    '"nobody":1',
    '"":1',
    '"__proto__":1',
    '"a\\u0000b@example.com":1',
    '"\\ud800@example.com":1',
    '"<b>@@":1',
    '"x@example.com":-1',
    '"y@example.com":"1e3"',
    '"z@example.com":null',
    '"w@example.com":{}',
  ];
  for (const entry of bad) {
    const lied = documentText({ users }).replace('"per_user_storage":{', `"per_user_storage":{${entry},`);
    const reading = await read(lied);
    assert.deepEqual(reading.invalidFields, ["per_user_storage"], entry);
    assert.deepEqual([...reading.perUserStorage], [["good@example.com", 5n]]);
    assert.equal(reading.perUserQuota.size, 1);
  }
});

test("a detail with a lie in it keeps what is true (M-05)", async () => {
  const lied = documentText({ users: [{ name: "a@example.com", usedBytes: 5 }] }).replace(
    '"trash_bytes":0,"staging_bytes":0,"file_count":1',
    '"trash_bytes":-1,"staging_bytes":0,"file_count":"1"',
  );
  const reading = await read(lied);
  assert.deepEqual(reading.invalidFields, ["per_user_detail"]);
  const { trashBytes, stagingBytes, fileCount } = reading.perUserDetail.get("a@example.com") ?? {};
  assert.deepEqual([trashBytes, stagingBytes, fileCount], [null, 0n, null]);
});

const GARBAGE: Readonly<Record<string, string | Buffer>> = {
  "nothing at all": "",
  "an empty object": "{}",
  "an object without a metric": '{"hello":"world","disk_total_bytes":"x"}',
  "an array": "[]",
  null: "null",
  "a number": "12",
  "half a document": documentText({ users: [] }).slice(0, -20),
  "a document with something behind it": `${documentText({ users: [] })}{}`,
  HTML: "<html><body>502 Bad Gateway</body></html>",
  NaN: documentText({ users: [] }).replace(":40,", ":NaN,"),
  Infinity: documentText({ users: [] }).replace(":40,", ":Infinity,"),
  "invalid UTF-8": Buffer.concat([Buffer.from('{"version":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
  "invalid UTF-8 in a username": Buffer.from(
    documentText({ users: [{ name: "a@example.com" }] }).replaceAll("a@", "\u00ff@"),
    "latin1",
  ),
  "a byte order mark": `\ufeff${documentText({ users: [] })}`,
  "brackets without end": "[".repeat(200_000),
};

for (const [name, body] of Object.entries(GARBAGE)) {
  test(`${name} is no answer (D24)`, async () => {
    await assert.rejects(read(body), (error) => error instanceof PollError || error instanceof SyntaxError);
  });
}

test("1e999 is an infinity, which no field can be", async () => {
  const reading = await read(documentText({ users: [] }).replace(":40,", ":1e999,"));
  assert.deepEqual(reading.invalidFields, ["disk_usage_percent"]);
});

test("what has not changed since the last poll keeps its objects; what has changed is new", async () => {
  const document = testDocument();
  const users = fakeUsers(50);
  const [one, two] = [
    await document.read(Buffer.from(documentText({ users }))),
    await document.read(Buffer.from(documentText({ users, fields: { uptime_seconds: 5 } }))),
  ];
  assert.equal(two.uptimeSeconds, 5);
  assert.equal(two.perUserStorage, one.perUserStorage);
  assert.equal(two.perUserQuota, one.perUserQuota);
  assert.equal(two.perUserDetail, one.perUserDetail);
  const [first, ...others] = users;
  assert.ok(first !== undefined);
  const seen = [{ ...first, lastActiveUnix: 1_790_009_999 }, ...others];
  const three = await document.read(Buffer.from(documentText({ users: seen })));
  assert.equal(three.perUserStorage, one.perUserStorage);
  assert.equal(three.perUserDetail.get(first.name)?.lastActiveUnix, 1_790_009_999);
  assert.equal(
    three.perUserDetail.get("user7@people.example"),
    one.perUserDetail.get("user7@people.example"),
  );
  const four = await document.read(Buffer.from(documentText({})));
  assert.equal(four.perUserStorage.size, 0, "what is withheld now is not shown from before");
});

test("a large document is read in pieces between which the event loop turns, to the same result", async () => {
  const users = fakeUsers(3_000);
  let turns = 0;
  const document = new NodeDocument("n1", new UserAllowance(), () => {
    turns++;
    return Promise.resolve();
  });
  const reading = await document.read(Buffer.from(documentText({ users })));
  assert.ok(turns > 5, `${turns} turns`);
  assert.deepEqual(reading.invalidFields, []);
  assert.equal(reading.perUserDetail.size, 3_000);
  assert.equal(reading.perUserStorage.get("user2999@people.example"), 2_999n * 1_000_003n);
});

test("a large document that is broken anywhere is no answer", async () => {
  const whole = documentText({ users: fakeUsers(6_000) });
  const places = Array.from({ length: 12 }, (_, index) => Math.floor((whole.length / 12) * index));
  for (const place of places) {
    const broken = `${whole.slice(0, place)}\u0001${whole.slice(place)}`;
    await assert.rejects(read(broken), (error) => error instanceof PollError || error instanceof SyntaxError);
  }
});

test(`${METRICS_USERS_LISTED_MAX} users are read; one more, or a million, are no answer`, async () => {
  const most = await read(documentText({ users: fakeUsers(METRICS_USERS_LISTED_MAX) }));
  assert.equal(most.perUserStorage.size, METRICS_USERS_LISTED_MAX);
  await assert.rejects(read(documentText({ users: fakeUsers(METRICS_USERS_LISTED_MAX + 1) })), PollError);
});

test("what one map entry may hold is bounded, however large the document", async () => {
  const huge = documentText({ users: [] }).replace(
    '"per_user_quota":{',
    `"per_user_quota":{"a@example.com":"${"9".repeat(2_000_000)}"`,
  );
  await assert.rejects(read(huge), PollError);
});

test("users beyond what the console keeps are not taken, and give their room back (M-05)", async () => {
  const allowance = new UserAllowance(1_000);
  const documents = ["n1", "n2"].map((id) => new NodeDocument(id, allowance));
  const [one, two] = documents;
  assert.ok(one !== undefined && two !== undefined);
  assert.equal((await one.read(bodyOf(700))).perUserStorage.size, 700);
  const refused = await two.read(bodyOf(301));
  assert.equal(refused.perUserStorage.size, 0);
  assert.deepEqual(refused.invalidFields, ["per_user_storage", "per_user_quota", "per_user_detail"]);
  assert.equal((await two.read(bodyOf(300))).perUserStorage.size, 300);
  assert.equal((await two.read(bodyOf(301))).perUserStorage.size, 0);
  assert.equal(
    (await two.read(bodyOf(CONSOLE_USERS_PER_NODE_FREE))).perUserStorage.size,
    CONSOLE_USERS_PER_NODE_FREE,
  );
  allowance.release("n1");
  assert.equal((await two.read(bodyOf(1_000))).perUserStorage.size, 1_000);
});

test("however a document is laid out, it reads as JSON.parse reads it", async () => {
  const name = fc.constantFrom(
    "a@example.com",
    "b}@example.com",
    "c\\\\@x",
    'd"@x',
    "é@example.com",
    "e,{@x",
  );
  const map = fc.dictionary(name, fc.oneof(fc.nat(), fc.constantFrom(-1, "5", null, [], {})), {
    noNullPrototype: true,
  });
  const member = fc.constantFrom("per_user_storage", "per_user_quota", "per_user_detail", "x");
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(member, fc.oneof(map, fc.constant(null), fc.string()), fc.constantFrom("", " ", "\n")),
      ),
      fc.constantFrom(
        "",
        ',"note":",\\"per_user_quota\\":{"',
        ',"deep":{"y":1,"per_user_storage":{"q@x":1}}',
      ),
      async (members, noise) => {
        const body = members.map(
          ([key, value, blank]) => `,${blank}"${key}":${JSON.stringify(value)}${blank}`,
        );
        const unique = new Set(members.map(([key]) => key)).size === members.length;
        fc.pre(unique);
        const source = `{"disk_total_bytes":1${noise}${body.join("")}}`;
        const parsed = JSON.parse(source) as Record<string, Record<string, unknown> | null>;
        const reading = await read(source);
        const map = parsed["per_user_storage"];
        const wanted = Object.entries(typeof map === "object" && map !== null ? map : {}).filter(
          ([key, value]) =>
            (typeof value === "number" && value >= 0) || value === "5" ? isName(key) : false,
        );
        assert.deepEqual(
          new Map([...reading.perUserStorage].map(([key, value]) => [key, Number(value)])),
          new Map(wanted.map(([key, value]) => [key, Number(value)])),
        );
      },
    ),
  );
});

test("random bytes in an honest document never do worse than cost the answer or a field (M-05)", async () => {
  const honest = Buffer.from(documentText({ users: fakeUsers(20) }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(honest.length - 1), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 4,
      }),
      async (changes) => {
        const body = Buffer.from(honest);
        for (const [at, byte] of changes) body[at] = byte;
        try {
          const reading = await read(body);
          for (const users of [reading.perUserStorage, reading.perUserQuota]) {
            for (const bytes of users.values()) assert.ok(bytes >= 0n && bytes <= U64_MAX);
          }
          assert.ok(
            reading.diskUsagePercent === null ||
              (reading.diskUsagePercent >= 0 && reading.diskUsagePercent <= 100),
          );
        } catch (error) {
          assert.ok(error instanceof PollError || error instanceof SyntaxError, String(error));
        }
      },
    ),
    { numRuns: 300 },
  );
});

test(`the piece of a document that is read in one go is about ${POLL_PIECE_BYTES} bytes`, async () => {
  // Names of this length make a map of exactly one piece, and of slightly more.
  for (const extra of [0, 1]) {
    const users = fakeUsers(800);
    const text = documentText({ users });
    const start = text.indexOf(',"per_user_detail"');
    const length = text.length - 1 - start;
    const padded = text.replace(
      '"quota_explicit":false}',
      `"quota_explicit":false,"pad":"${"x".repeat(Math.max(0, POLL_PIECE_BYTES - length - 9 + extra))}"}`,
    );
    const reading = await read(padded);
    assert.equal(reading.perUserDetail.size, 800);
    assert.deepEqual(reading.invalidFields, []);
  }
});

function testDocument(): NodeDocument {
  return new NodeDocument("n1", new UserAllowance());
}

function read(body: string | Buffer): Promise<NodeReading> {
  return testDocument().read(Buffer.from(body as string));
}

function bodyOf(users: number): Buffer {
  return Buffer.from(documentText({ users: fakeUsers(users) }));
}

function isName(name: string): boolean {
  return !name.includes("\\");
}

function text(value: unknown): unknown {
  if (value instanceof Map)
    return [...(value as Map<string, unknown>)].map(([key, item]) => [key, text(item)]);
  return typeof value === "bigint" ? `${value}n` : value;
}
