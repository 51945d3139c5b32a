// Differences between a node's answers: they are merged, and whatever a node sends they cost no more (D25, M-05).
import assert from "node:assert/strict";
import { test } from "node:test";
import { documentText, fakeUsers } from "#base/fake-nodes.fixture.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import type { NodeReading } from "./cluster-state.ts";
import { CONSOLE_USERS_PER_NODE_FREE, ListedUsersLimit } from "./listed-users-limit.ts";
import { NodeDocument } from "./node-document.ts";
import { PollError } from "./poll-error.ts";

const [ONE, TWO] = ["users-0123456789abcdef-1", "users-0123456789abcdef-2"];
const SINCE_ONE = `/metrics?since=${ONE}`;
const fresh = (listedUsers = new ListedUsersLimit()): NodeDocument => new NodeDocument("n1", listedUsers);

function whole(
  document: NodeDocument,
  version: string,
  wish: Parameters<typeof documentText>[0],
): NodeReading {
  document.ask();
  return document.read({ body: Buffer.from(documentText(wish)), etag: `"${version}"` });
}

function difference(document: NodeDocument, body: string, base = ONE): NodeReading {
  assert.equal(document.ask(), SINCE_ONE);
  const text = documentText({}).replace(/}$/, `,"users_since":"${base}"${body}}`);
  return document.read({ body: Buffer.from(text), etag: `"${TWO}"` });
}

test("what a difference lists is taken, all else stays the object that it was (D25)", () => {
  const document = fresh();
  assert.equal(document.ask(), "/metrics");
  const users = fakeUsers(3);
  const [a, b] = [users[0]?.name ?? "", users[1]?.name ?? ""];
  const first = whole(document, ONE, { users, near: users.slice(0, 1) });
  const second = difference(document, `,"per_user_storage":{"${b}":7,"new@x":8},"per_user_quota":{}`);
  assert.equal(document.ask(), `/metrics?since=${TWO}`);
  assert.deepEqual([...second.perUserStorage.values()], [0n, 7n, 2_000_006n, 8n]);
  assert.equal(first.perUserStorage.get(b), 1_000_003n, "the reading before stays as it was");
  assert.equal(second.perUserQuota, first.perUserQuota);
  assert.equal(second.perUserDetail, first.perUserDetail, "a map that is left out is unchanged");
  assert.deepEqual(second.nearQuota, first.nearQuota);
  assert.deepEqual([second.usersWithheld, second.invalidFields], [false, []]);
  const third = fresh();
  whole(third, ONE, { users, near: users.slice(0, 1) });
  const near = difference(third, `,"near_quota_storage":{"${b}":1},"near_quota_limit":{"${b}":1}`).nearQuota;
  assert.deepEqual([near?.storage.has(a), near?.storage.get(b), near?.limit.get(b)], [false, 1n, 1n]);
});

test("a difference that nobody asked for, or to another version, is no answer, and the next request is for all (M-05)", () => {
  const document = fresh();
  whole(document, ONE, { users: fakeUsers(3) });
  assert.throws(() => difference(document, "", TWO), /another version/);
  assert.equal(document.ask(), "/metrics");
  const marked = documentText({ users: [] }).replace(/}$/, `,"users_since":"${ONE}"}`);
  for (const text of [marked, marked.replace(`"${ONE}"`, "null"), marked.replace(`"${ONE}"`, "{}")]) {
    assert.throws(() => document.read({ body: Buffer.from(text), etag: `"${TWO}"` }), PollError);
    assert.equal(document.ask(), "/metrics");
  }
});

test("after a poll without an answer, and after a fault in a map, the whole document is asked for (D25)", () => {
  const document = fresh();
  const users = fakeUsers(3);
  whole(document, ONE, { users });
  assert.equal(document.ask(), SINCE_ONE);
  assert.equal(document.ask(), "/metrics", "the answer did not come");
  whole(document, ONE, { users });
  const faulty = difference(
    document,
    `,"per_user_quota":{"user0@people.example":-1,"user1@people.example":5}`,
  );
  assert.deepEqual(faulty.invalidFields, ["per_user_quota"]);
  assert.equal(faulty.perUserQuota.get("user1@people.example"), 5n);
  assert.equal(document.ask(), "/metrics");
  whole(document, ONE, {});
  assert.equal(document.ask(), "/metrics", "without users there is nothing to differ from");
});

test("only a tag of the nodes' own form becomes part of a request (M-05)", () => {
  for (const etag of [
    undefined,
    "",
    ONE,
    `W/"${ONE}"`,
    '"abc"',
    '"users-x-1"',
    `"${ONE}&x=1"`,
    `"${ONE} "`,
    `"users-${"a".repeat(33)}-1"`,
    `"users-ab-${"1".repeat(16)}"`,
    '"users-ab-1\r\nx: y"',
  ]) {
    const document = fresh();
    document.ask();
    document.read({ body: Buffer.from(documentText({ users: [] })), etag });
    assert.equal(document.ask(), "/metrics", `tag: ${etag}`);
  }
});

test("differences add no more users than a document may list, nor than the console has room for (M-05)", () => {
  const entries = (prefix: string, count: number): string =>
    fakeUsers(count, prefix)
      .map(({ name }) => `"${name}":1`)
      .join(",");
  const document = fresh();
  const half = METRICS_USERS_LISTED_MAX / 2;
  whole(document, ONE, { users: fakeUsers(half) });
  const most = difference(document, `,"per_user_storage":{${entries("b", half)}}`);
  assert.equal(most.perUserStorage.size, METRICS_USERS_LISTED_MAX);
  whole(document, ONE, { users: fakeUsers(half) });
  assert.throws(() => difference(document, `,"per_user_quota":{${entries("b", half + 1)}}`), PollError);
  const free = CONSOLE_USERS_PER_NODE_FREE;
  const crowded = fresh(new ListedUsersLimit(free));
  whole(crowded, ONE, { users: fakeUsers(free) });
  const refused = difference(crowded, `,"per_user_detail":{"one-more@x":{}}`);
  assert.equal(refused.perUserStorage.size, 0);
  assert.deepEqual(refused.invalidFields, ["per_user_storage", "per_user_quota", "per_user_detail"]);
  assert.equal(crowded.ask(), "/metrics");
});

test("a document of more values than the most users have is not parsed, because that would fill the memory (M-05)", () => {
  const values = 16 * METRICS_USERS_LISTED_MAX;
  const body = (count: number): Buffer =>
    Buffer.from(documentText({}).replace(/}$/, `,"x":[${Array<string>(count).fill("{}").join(",")}]}`));
  assert.throws(() => fresh().read({ body: body(values), etag: undefined }), /too many values/);
  assert.doesNotThrow(() => fresh().read({ body: body(values / 2 - 1_000), etag: undefined }));
});

test("neither depth nor millions of digits make an exact reading fail otherwise, or take long (M-05, T17)", () => {
  const exact = documentText({}).replace(
    '"bytes_read_total":20000000',
    '"bytes_read_total":9007199254740993',
  );
  const read = (text: string): NodeReading => fresh().read({ body: Buffer.from(text), etag: undefined });
  assert.equal(read(exact).bytesReadTotal, 9_007_199_254_740_993n);
  const padded = (bytes: number): NodeReading => read(exact.replace(/}$/, `,"x":"${"x".repeat(bytes)}"}`));
  const most = 1_048_576 - Buffer.byteLength(exact) - `,"x":""`.length;
  assert.equal(padded(most).bytesReadTotal, 9_007_199_254_740_993n);
  assert.deepEqual(padded(most + 1).invalidFields, ["bytes_read_total"], "unknown, and not rounded");
  const deep = `,"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  assert.throws(() => read(exact.replace(/}$/, deep)), PollError);
  const long = read(exact.replace(/"chunk_count":1000/, `"chunk_count":${"9".repeat(1_000_000)}`));
  assert.deepEqual([long.chunkCount, long.invalidFields], [null, ["chunk_count"]]);
});
