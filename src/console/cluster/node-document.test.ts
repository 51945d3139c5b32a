// The check of a node's document: honest ones keep all values, false ones lose some (M-05, D12, T8, T17).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentText, type FakeUser, fakeUsers } from "#base/fake-nodes.fixture.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import type { NodeReading } from "./cluster-state.ts";
import { CONSOLE_USERS_PER_NODE_FREE, ListedUsersLimit } from "./listed-users-limit.ts";
import { NodeDocument } from "./node-document.ts";
import type { NodeAnswer } from "./node-http.ts";
import { PollError } from "./poll-error.ts";

const U64_MAX = 2n ** 64n - 1n;

test("an honest document keeps every value, counts of 64 bits exactly (spec 2.7, T17)", () => {
  const users: FakeUser[] = [
    {
      name: "alice@example.com",
      usedBytes: 2n ** 53n + 1n,
      quotaBytes: U64_MAX,
      lastActiveUnix: 1_790_000_000,
    },
    { name: "bob@example.com", usedBytes: 0, lastActiveUnix: null },
  ];
  const reading = read(documentText({ fields: { disk_total_bytes: U64_MAX, quota_drift_bytes: -5 }, users }));
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

test("integers above 2^53 that are written as plain numbers keep all digits, in single fields and in maps (T17)", () => {
  const exact = "9007199254740993";
  const text = documentText({ users: [{ name: "a@example.com", usedBytes: 7_777 }] })
    .replace('"bytes_read_total":20000000', `"bytes_read_total":${exact}`)
    .replaceAll("7777", exact);
  const reading = read(text);
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
  test(`${field}: a lie costs this field alone (M-05)`, () => {
    const honest = read(documentText({ users: [] }));
    for (const lie of lies) {
      const reading = read(documentText({ fields: { [field]: lie }, users: [] }));
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

test("numbers at the ends of their ranges are no lies", () => {
  const fields = {
    disk_usage_percent: 100,
    cpu_usage_percent: 0,
    mem_usage_percent: 100,
    disk_free_bytes: "0",
  };
  const reading = read(documentText({ fields, users: [] }));
  assert.deepEqual(reading.invalidFields, []);
  assert.equal(reading.diskUsagePercent, 100);
  assert.equal(reading.diskFreeBytes, 0n);
});

test("null is unknown and no lie; a missing field of spec 2.7 is told, a missing later one is an older node (D12, M-10)", () => {
  const reading = read(
    documentText({
      fields: { cpu_temp_celsius: null, load_avg_1m: undefined, boot_id: undefined },
      users: [],
    }),
  );
  assert.deepEqual(reading.invalidFields, ["load_avg_1m"]);
  assert.deepEqual([reading.cpuTempCelsius, reading.loadAvg1m, reading.bootId], [null, null, null]);
});

test("without maps of users they are withheld, which is no lie (T8); with one of two something is missing", () => {
  const withheld = read(documentText({}));
  assert.equal(withheld.usersWithheld, true);
  assert.deepEqual(withheld.invalidFields, []);
  const half = documentText({ users: [] }).replace(',"per_user_quota":{}', "");
  assert.deepEqual(read(half).invalidFields, ["per_user_quota"]);
  const spec27 = documentText({ users: [] }).replace(',"per_user_detail":{}', "");
  assert.deepEqual(read(spec27).invalidFields, [], "the third map is an addition");
});

test("an entry that is no user or has no valid value is left out, the others stay (M-05)", () => {
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
    const reading = read(lied);
    assert.deepEqual(reading.invalidFields, ["per_user_storage"], entry);
    assert.deepEqual([...reading.perUserStorage], [["good@example.com", 5n]]);
    assert.equal(reading.perUserQuota.size, 1);
  }
});

test("a detail with a lie in it keeps what is true (M-05)", () => {
  const lied = documentText({ users: [{ name: "a@example.com", usedBytes: 5 }] }).replace(
    '"trash_bytes":0,"staging_bytes":0,"file_count":1',
    '"trash_bytes":-1,"staging_bytes":0,"file_count":"1"',
  );
  const reading = read(lied);
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
  test(`${name} is no answer (D24)`, () => {
    assert.throws(() => read(body), PollError);
  });
}

test("1e999 is an infinity, which no field can be", () => {
  const reading = read(documentText({ users: [] }).replace(":40,", ":1e999,"));
  assert.deepEqual(reading.invalidFields, ["disk_usage_percent"]);
});

test("what has not changed since the last poll keeps its objects; what has changed is new", () => {
  const document = testDocument();
  const users = fakeUsers(50);
  const [one, two] = [
    document.read(answer(documentText({ users }))),
    document.read(answer(documentText({ users, fields: { uptime_seconds: 5 } }))),
  ];
  assert.equal(two.uptimeSeconds, 5);
  assert.equal(two.perUserStorage, one.perUserStorage);
  assert.equal(two.perUserQuota, one.perUserQuota);
  assert.equal(two.perUserDetail, one.perUserDetail);
  const [first, ...others] = users;
  assert.ok(first !== undefined);
  const seen = [{ ...first, lastActiveUnix: 1_790_009_999 }, ...others];
  const three = document.read(answer(documentText({ users: seen })));
  assert.equal(three.perUserStorage, one.perUserStorage);
  assert.equal(three.perUserDetail.get(first.name)?.lastActiveUnix, 1_790_009_999);
  assert.equal(
    three.perUserDetail.get("user7@people.example"),
    one.perUserDetail.get("user7@people.example"),
  );
  const four = document.read(answer(documentText({})));
  assert.equal(four.perUserStorage.size, 0, "what is withheld now is not shown from before");
});

test(`${METRICS_USERS_LISTED_MAX} users are read; one more, or a million, are no answer`, () => {
  const most = read(documentText({ users: fakeUsers(METRICS_USERS_LISTED_MAX) }));
  assert.equal(most.perUserStorage.size, METRICS_USERS_LISTED_MAX);
  assert.throws(() => read(documentText({ users: fakeUsers(METRICS_USERS_LISTED_MAX + 1) })), PollError);
});

test("a document of invalid names alone is no answer, after the first thousand of them (M-05)", () => {
  const liar = (count: number): string => {
    const names = Object.fromEntries(Array.from({ length: count }, (_, at) => [`/${at}`, 1]));
    return JSON.stringify({ ...JSON.parse(documentText({ users: [] })), per_user_storage: names });
  };
  assert.equal(read(liar(1_000)).perUserStorage.size, 0);
  assert.throws(() => read(liar(1_001)), PollError);
});

test("users beyond what the console keeps are not taken, and give their room back (M-05)", () => {
  const listedUsers = new ListedUsersLimit(1_000);
  const documents = ["n1", "n2"].map((id) => new NodeDocument(id, listedUsers));
  const [one, two] = documents;
  assert.ok(one !== undefined && two !== undefined);
  assert.equal(one.read(bodyOf(700)).perUserStorage.size, 700);
  const refused = two.read(bodyOf(301));
  assert.equal(refused.perUserStorage.size, 0);
  assert.deepEqual(refused.invalidFields, ["per_user_storage", "per_user_quota", "per_user_detail"]);
  assert.equal(two.read(bodyOf(300)).perUserStorage.size, 300);
  assert.equal(two.read(bodyOf(301)).perUserStorage.size, 0);
  assert.equal(
    two.read(bodyOf(CONSOLE_USERS_PER_NODE_FREE)).perUserStorage.size,
    CONSOLE_USERS_PER_NODE_FREE,
  );
  listedUsers.release("n1");
  assert.equal(two.read(bodyOf(1_000)).perUserStorage.size, 1_000);
});

test("however a document is laid out, it reads as JSON.parse reads it", () => {
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
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(member, fc.oneof(map, fc.constant(null), fc.string()), fc.constantFrom("", " ", "\n")),
      ),
      fc.constantFrom(
        "",
        ',"note":",\\"per_user_quota\\":{"',
        ',"deep":{"y":1,"per_user_storage":{"q@x":1}}',
      ),
      (members, noise) => {
        const body = members.map(
          ([key, value, blank]) => `,${blank}"${key}":${JSON.stringify(value)}${blank}`,
        );
        const unique = new Set(members.map(([key]) => key)).size === members.length;
        fc.pre(unique);
        const source = `{"disk_total_bytes":1${noise}${body.join("")}}`;
        const parsed = JSON.parse(source) as Record<string, Record<string, unknown> | null>;
        const reading = read(source);
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

test("random bytes in an honest document never do worse than cost the answer or a field (M-05)", () => {
  const honest = Buffer.from(documentText({ users: fakeUsers(20) }));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(honest.length - 1), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 4,
      }),
      (changes) => {
        const body = Buffer.from(honest);
        for (const [at, byte] of changes) body[at] = byte;
        try {
          const reading = read(body);
          for (const users of [reading.perUserStorage, reading.perUserQuota]) {
            for (const bytes of users.values()) assert.ok(bytes >= 0n && bytes <= U64_MAX);
          }
          assert.ok(
            reading.diskUsagePercent === null ||
              (reading.diskUsagePercent >= 0 && reading.diskUsagePercent <= 100),
          );
        } catch (error) {
          assert.ok(error instanceof PollError, String(error));
        }
      },
    ),
    { numRuns: 300 },
  );
});

function testDocument(): NodeDocument {
  return new NodeDocument("n1", new ListedUsersLimit());
}

function answer(body: string | Buffer, etag?: string): NodeAnswer {
  return { body: Buffer.from(body as string), etag };
}

function read(body: string | Buffer): NodeReading {
  return testDocument().read(answer(body));
}

function bodyOf(users: number): NodeAnswer {
  return answer(documentText({ users: fakeUsers(users) }));
}

function isName(name: string): boolean {
  return !name.includes("\\");
}

function text(value: unknown): unknown {
  if (value instanceof Map)
    return [...(value as Map<string, unknown>)].map(([key, item]) => [key, text(item)]);
  return typeof value === "bigint" ? `${value}n` : value;
}
