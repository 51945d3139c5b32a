// Differences of the /metrics document: what changed after an answer, and nothing that was in it (D25).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeMetrics } from "./metrics-document.ts";
import { metricsDifference, metricsJson } from "./metrics-json.ts";
import { UserMaps, type UserReadings } from "./user-maps.ts";

const USER: Omit<UserReadings, "username"> = {
  liveBytes: 1,
  trashBytes: 0,
  stagingBytes: 0,
  fileCount: 1,
  inodeCount: 1,
  inodeLimit: 10,
  inodeLimitExplicit: false,
  quotaBytes: 1_000n,
  quotaExplicit: false,
  lastActiveWallMs: undefined,
};
const METRICS = { uptime_seconds: 7 } as NodeMetrics;
const GUARDED = { damaged: [], securityEventsTotal: 3 };

function node(users: number) {
  const people = new Map<string, UserReadings>();
  const maps = new UserMaps((username) => people.get(username));
  const put = (at: number, readings: Partial<UserReadings> = {}): void => {
    const username = `u${at}@x`;
    people.set(username, { ...(people.get(username) ?? { ...USER, username }), ...readings });
    maps.update([username]);
  };
  for (let at = 0; at < users; at++) put(at);
  const changed = (version: string): Record<string, unknown> => {
    const answer = maps.answerOf(version) ?? assert.fail("the version is known");
    const pieces = metricsDifference(METRICS, maps, GUARDED, { version, answer });
    return JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>;
  };
  return { maps, put, changed };
}

test("each map of a difference has the users whose entry there changed, over several blocks; an earlier version has more", () => {
  const { maps, put, changed } = node(600);
  const head = { uptime_seconds: 7, security_events_total: 3, damaged_files: [] };
  const first = maps.takeVersion();
  const none = { per_user_storage: {}, per_user_quota: {}, per_user_detail: {} };
  assert.deepEqual(changed(first), { ...head, users_since: first, ...none });
  put(3);
  assert.deepEqual(
    changed(first),
    { ...head, users_since: first, ...none },
    "it was read anew, and is as before",
  );
  put(3, { lastActiveWallMs: 5_000 });
  const second = maps.takeVersion();
  put(599, { liveBytes: 2 });
  put(600, { quotaBytes: 5_000n });
  const [later, earlier] = [changed(second), changed(first)];
  assert.deepEqual(later["per_user_storage"], { "u599@x": 2, "u600@x": 1 });
  assert.deepEqual(later["per_user_quota"], { "u600@x": 5_000 });
  assert.deepEqual(Object.keys(later["per_user_detail"] as object), ["u599@x", "u600@x"]);
  assert.deepEqual(earlier["per_user_storage"], later["per_user_storage"]);
  assert.deepEqual(Object.keys(earlier["per_user_detail"] as object), ["u3@x", "u599@x", "u600@x"]);
  const { users_since: mark, ...whole } = { ...earlier, users_since: undefined };
  assert.equal(mark, undefined);
  assert.deepEqual(
    Object.keys(JSON.parse(Buffer.concat(metricsJson(METRICS, maps, GUARDED)).toString()) as object).sort(),
    [...Object.keys(whole), "near_quota_limit", "near_quota_storage"].sort(),
  );
});

test("users near their quota are whole in a difference once one of them changed, came or went", () => {
  const { maps, put, changed } = node(3);
  const near = (version: string): unknown => {
    const { near_quota_storage: storage, near_quota_limit: limit } = changed(version);
    return [storage, limit];
  };
  const first = maps.takeVersion();
  put(0, { liveBytes: 10 });
  assert.deepEqual(near(first), [undefined, undefined], "it was not near and is not");
  put(1, { liveBytes: 990 });
  put(2, { liveBytes: 980 });
  assert.deepEqual(near(first), [
    { "u1@x": 990, "u2@x": 980 },
    { "u1@x": 1_000, "u2@x": 1_000 },
  ]);
  const second = maps.takeVersion();
  put(1, { lastActiveWallMs: 9_000 });
  assert.deepEqual(near(second), [undefined, undefined]);
  put(1, { liveBytes: 0 });
  assert.deepEqual(near(second), [{ "u2@x": 980 }, { "u2@x": 1_000 }]);
});

test("a version is of one process and one answer; no other text has a number", () => {
  const [one, two] = [node(0).maps, node(0).maps];
  const versions = [one.takeVersion(), one.takeVersion()];
  assert.deepEqual(
    versions.map((version) => one.answerOf(version)),
    [1, 2],
  );
  const [first = ""] = versions;
  for (const wrong of [
    null,
    "",
    "users-",
    `${first}0`,
    `${first}.0`,
    ` ${first}`,
    first.replace(/1$/, "3"),
    first.replace(/1$/, "0"),
  ])
    assert.equal(one.answerOf(wrong), undefined, `version: ${wrong}`);
  assert.equal(two.answerOf(first), undefined);
});

test("where more than 4,096 users changed there is no difference, since the whole document costs less", () => {
  const { maps, put, changed } = node(4_200);
  const version = maps.takeVersion();
  for (let at = 0; at < 4_096; at++) put(at, { liveBytes: 2 });
  assert.equal(Object.keys(changed(version)["per_user_storage"] as object).length, 4_096);
  put(4_100, { liveBytes: 2 });
  assert.equal(maps.answerOf(version), undefined);
  assert.notEqual(maps.answerOf(maps.takeVersion()), undefined);
});
