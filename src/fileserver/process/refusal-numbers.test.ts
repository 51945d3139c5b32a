// Refusals over a real connection carry their numbers, in the details and as plain trailers (D1).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ManualClock } from "#base/clock.ts";
import { ErrorInfoSchema } from "#wire/framing/gen/google/rpc/error_details_pb.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const clock = new ManualClock();
let node: TestNode;
let user: TestUser;

before(async () => {
  node = await startTestNode({ clock });
  user = await node.signIn("user@example.com");
  await user.call.createDirectory({ path: "/d" });
  await user.call.createFile({ path: "/d/f", data: Buffer.from("12345") });
});
after(() => node.stop());

/** Reason, numbers and trailers of a refused call, without the request's id. */
async function told(call: Promise<unknown>): Promise<{
  reason: string;
  numbers: Record<string, string>;
  trailer: (name: string) => string | undefined;
}> {
  const { reason, error } = await refusal(call);
  const detail = error.details.find(({ typeUrl }) => typeUrl.endsWith("/google.rpc.ErrorInfo"));
  assert.ok(detail !== undefined);
  const info = fromBinary(ErrorInfoSchema, detail.value);
  assert.deepEqual([info.reason, info.domain], [reason, "grove"]);
  const { request_id: _id, ...numbers } = info.metadata;
  return { reason, numbers, trailer: (name) => error.metadata.get(name) };
}

test("quota: used, quota and what was asked for, twice (D1)", async () => {
  const { reason, numbers, trailer } = await told(
    (async () => {
      const data = Buffer.alloc(10);
      await node.anonymous.setQuota({ username: user.email, quotaBytes: 8n }, withPassword());
      await user.call.createFile({ path: "/d/g", data });
    })(),
  );
  assert.equal(reason, "QUOTA_EXCEEDED");
  assert.deepEqual(numbers, {
    used: "5",
    reserved: "0",
    quota: "8",
    requested: "10",
    trash_bytes: "0",
    staging_bytes: "0",
    root_owner: user.email,
  });
  assert.deepEqual([trailer("svc-used-bytes"), trailer("svc-quota-bytes")], ["5", "8"]);
  await node.anonymous.setQuota({ username: user.email, quotaBytes: 0n }, withPassword());
});

test("reserve: free and usable bytes (spec 7, D1)", async () => {
  const { freeBytes } = node.disk;
  node.disk.freeBytes = 21_474_836_481n;
  const { reason, numbers, trailer } = await told(
    user.call.createFile({ path: "/d/g", data: Buffer.alloc(2) }),
  );
  node.disk.freeBytes = freeBytes;
  assert.equal(reason, "DISK_RESERVE");
  assert.deepEqual([numbers["usable_bytes"], numbers["reserve_bytes"]], ["1", "21474836480"]);
  assert.equal(trailer("svc-free-bytes"), "21474836481");
});

test("limits, entries and versions that stand in the way are named", async () => {
  const page = await told(user.call.listDir({ path: "/", pageSize: 1_001 }));
  assert.deepEqual([page.reason, page.numbers], ["BAD_ARGUMENT", { limit: "1000" }]);
  const large = await told(user.call.createFile({ path: "/x", data: Buffer.alloc(65_537) }));
  assert.deepEqual([large.reason, large.numbers], ["BAD_ARGUMENT", { limit_bytes: "65536" }]);
  const full = await told(user.call.deleteFile({ path: "/d" }));
  assert.deepEqual([full.reason, full.numbers], ["NOT_EMPTY", { entries: "1" }]);
  const { etag } = await user.call.getAttr({ path: "/d/f" });
  const stale = await told(user.call.writeFile({ path: "/d/f", data: Buffer.from("x"), ifMatch: "other" }));
  assert.deepEqual([stale.reason, stale.numbers], ["ETAG_MISMATCH", { etag }]);
});

test("a session that was not used for 15 minutes says so (spec 3.4)", async () => {
  const idle = await node.signIn("idle@example.com");
  clock.advance(15 * 60_000);
  const { reason, numbers } = await told(idle.call.getAttr({ path: "/" }));
  assert.deepEqual([reason, numbers], ["SESSION_IDLE", { idle_timeout_seconds: "900" }]);
});

/** The built-in administrator's password, which counts from this machine (T10). */
function withPassword(): { metadata: Record<string, string> } {
  return {
    metadata: {
      "x-admin-password-hash": "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918",
    },
  };
}
