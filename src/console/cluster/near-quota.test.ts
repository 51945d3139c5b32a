// Users near their quota in a node's document, which alerts need beside truncated lists (spec 2.7, M-05).
import assert from "node:assert/strict";
import { test } from "node:test";
import { documentText, fakeUsers } from "#base/fake-nodes.fixture.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import { ListedUsersLimit } from "./listed-users-limit.ts";
import { NodeDocument } from "./node-document.ts";
import type { NodeAnswer } from "./node-http.ts";

const fresh = (): NodeDocument => new NodeDocument("n1", new ListedUsersLimit());
const textOf = (wish: Parameters<typeof documentText>[0]): NodeAnswer => ({
  body: Buffer.from(documentText(wish)),
  etag: undefined,
});

test("users near their quota are read whichever users are listed, and whatever room those have (spec 2.7, M-05)", async () => {
  const full = { name: "last@people.example", usedBytes: 99, quotaBytes: 100 };
  assert.equal(fresh().read(textOf({ users: fakeUsers(10) })).nearQuota, null, "an older node");
  const none = fresh().read(textOf({ users: fakeUsers(10), near: [] }));
  assert.equal(none.nearQuota?.storage.size, 0);
  const all = textOf({ users: fakeUsers(METRICS_USERS_LISTED_MAX), near: [full] });
  const { nearQuota, invalidFields } = fresh().read(all);
  assert.deepEqual([nearQuota?.storage.get(full.name), nearQuota?.limit.get(full.name)], [99n, 100n]);
  assert.deepEqual(invalidFields, []);
  // No room for the lists of all users, and for two near users at most.
  const listedUsers = new ListedUsersLimit(0, 2);
  const [one, two] = [new NodeDocument("n1", listedUsers), new NodeDocument("n2", listedUsers)];
  const body = (near: number): NodeAnswer => textOf({ users: fakeUsers(300), near: fakeUsers(near) });
  const beside = one.read(body(2));
  assert.deepEqual([beside.perUserStorage.size, beside.nearQuota?.storage.size], [0, 2]);
  const isFreeOfCharge = 200;
  assert.equal(two.read(body(isFreeOfCharge + 1)).nearQuota, null);
  assert.equal(two.read(body(1)).nearQuota?.storage.size, 1);
});
