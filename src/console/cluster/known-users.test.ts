// Rereading maps of the same users: it agrees with the parser and keeps unchanged objects (D12, M-05).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentText, fakeUsers } from "#base/fake-nodes.fixture.ts";
import type { NodeReading } from "./cluster-state.ts";
import { NodeDocument, UserAllowance } from "./node-document.ts";

const fresh = (): NodeDocument => new NodeDocument("n1", new UserAllowance());

function outcome(document: NodeDocument, text: string): Promise<unknown> {
  return document.read(Buffer.from(text)).then(plain, (error: unknown) => String(error));
}

/** The same with maps that can be compared. */
function plain(reading: NodeReading): unknown {
  const { perUserStorage, perUserQuota, perUserDetail, ...rest } = reading;
  return {
    ...rest,
    users: [perUserStorage, perUserQuota, perUserDetail].map((users) => new Map<string, unknown>(users)),
  };
}

const numbers = fc.constantFrom("0", "5", "7", "17179869184", "999999999999999");
const ODDITIES =
  '05|00|-0|-1|1.5|1e3| 5|"7"|null|true||{}|[]|5,|5}|9007199254740991|9007199254740993|1000000000000000|' +
  "18446744073709551615|18446744073709551616";
const oddities = fc.constantFrom(...ODDITIES.split("|"));
const value = fc.oneof({ weight: 20, arbitrary: numbers }, { weight: 1, arbitrary: oddities });
const seen = fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: fc.constant("null") });
const isSet = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom("true", "false") },
  { weight: 1, arbitrary: fc.constantFrom("null", "1", "tru", "falsee") },
);
/** The fields that nodes without inode limits leave out. */
const inodes = fc.oneof(
  { weight: 1, arbitrary: fc.constant("") },
  {
    weight: 2,
    arbitrary: fc
      .tuple(value, value, isSet)
      .map(
        ([count, limit, set]) =>
          `"inode_count":${count},"inode_limit":${limit},"inode_limit_explicit":${set},`,
      ),
  },
);
const detail = fc
  .tuple(value, value, value, value, inodes, seen, isSet, fc.constantFrom("", "", "", ',"more":1', " "))
  .map(
    ([live, trash, staging, files, counts, active, set, more]) =>
      `{"live_bytes":${live},"trash_bytes":${trash},"staging_bytes":${staging},"file_count":${files},${counts}` +
      `"last_active_unix":${active},"quota_explicit":${set}${more}}`,
  );
const NAMES = ["a@example.com", "bb@example.com", "é@example.com", "d@x"];
const names = fc.oneof(
  { weight: 6, arbitrary: fc.constant(["a@example.com", "bb@example.com"]) },
  {
    weight: 1,
    arbitrary: fc.shuffledSubarray([...NAMES, "\\u0061@x", 'q\\"@x', "no name", "a@example.com "]),
  },
);

function mapOf(values: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const entries = names.chain((list) =>
    fc.tuple(...list.map((name) => values.map((text) => `"${name}":${text}`))),
  );
  return fc
    .tuple(entries, fc.constantFrom(...Array<string>(12).fill("}"), "} ", "}}", "", ",}"))
    .map(([list, end]) => `{${list.join(",")}${end}`);
}

const body = fc
  .tuple(
    mapOf(value),
    mapOf(value),
    mapOf(detail),
    fc.constantFrom("", "", "", "", ',"users_truncated":true'),
  )
  .map(
    ([storage, quota, details, behind]) =>
      `{"disk_total_bytes":1,"per_user_storage":${storage},"per_user_quota":${quota},"per_user_detail":${details}${behind}}`,
  );

test("whatever a node sends after what, it is read as if it came first (T17, M-05)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(body, { minLength: 2, maxLength: 6 }), async (bodies) => {
      const kept = fresh();
      for (const text of bodies) assert.deepEqual(await outcome(kept, text), await outcome(fresh(), text));
    }),
    { numRuns: 300 },
  );
});

test("of users who are listed again only those that have changed are made anew (D12)", async () => {
  const document = fresh();
  const read = (users: readonly ReturnType<typeof fakeUsers>[number][]): Promise<NodeReading> =>
    document.read(Buffer.from(documentText({ users })));
  const users = fakeUsers(3);
  const first = await read(users);
  const same = await read(users);
  for (const map of ["perUserStorage", "perUserQuota", "perUserDetail"] as const)
    assert.equal(same[map], first[map], `${map} is the same object`);
  const [one, two, three] = users.map(({ name }) => name);
  const changed = await read(users.map((user) => (user.name === two ? { ...user, usedBytes: 77 } : user)));
  assert.equal(changed.perUserQuota, first.perUserQuota);
  assert.notEqual(changed.perUserDetail, first.perUserDetail);
  assert.equal(first.perUserStorage.get(two ?? ""), 1_000_003n, "who holds the reading before keeps it");
  assert.equal(changed.perUserStorage.get(two ?? ""), 77n);
  assert.equal(changed.perUserDetail.get(two ?? "")?.liveBytes, 77n);
  for (const name of [one ?? "", three ?? ""])
    assert.equal(changed.perUserDetail.get(name), first.perUserDetail.get(name));
  const back = await read(users);
  assert.deepEqual(plain(back), plain(first), "what was read before the change comes back as it was");
  assert.equal(
    (await read(users.toReversed())).perUserStorage,
    back.perUserStorage,
    "the order says nothing",
  );
});
