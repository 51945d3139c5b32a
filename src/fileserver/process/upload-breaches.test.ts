// Every kind of bad upload with its answer, and proof that it changed nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Code } from "#wire/framing/status.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { chunk, header, refusal, startTestNode, type TestNode, type UploadPart } from "./node.fixture.ts";

let node: TestNode;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "admin@example.com" } });
  await node.signIn("user0@example.com");
});
after(() => node.stop());

interface Breach {
  readonly what: string;
  readonly parts: readonly UploadPart[];
  readonly code: number;
  readonly reason: string;
}
const BYTES = randomBytes(1_000);
const BREACHES: readonly Breach[] = [
  { what: "nothing at all", parts: [], code: Code.INVALID_ARGUMENT, reason: "BAD_ARGUMENT" },
  { what: "an empty message", parts: [{}], code: Code.INVALID_ARGUMENT, reason: "BAD_ARGUMENT" },
  {
    what: "a chunk before the header",
    parts: [chunk(0, BYTES)],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_ARGUMENT",
  },
  {
    what: "two headers",
    parts: [header("/b"), header("/b")],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_ARGUMENT",
  },
  {
    what: "a wrong checksum",
    parts: [header("/b"), chunk(0, BYTES, 7)],
    code: Code.ABORTED,
    reason: "CHECKSUM_MISMATCH",
  },
  {
    what: "a first offset above zero",
    parts: [header("/b"), chunk(1, BYTES)],
    code: Code.ABORTED,
    reason: "OFFSET_MISMATCH",
  },
  {
    what: "a gap",
    parts: [header("/b"), chunk(0, BYTES), chunk(1_001, BYTES)],
    code: Code.ABORTED,
    reason: "OFFSET_MISMATCH",
  },
  {
    what: "a chunk twice",
    parts: [header("/b"), chunk(0, BYTES), chunk(0, BYTES)],
    code: Code.ABORTED,
    reason: "OFFSET_MISMATCH",
  },
  {
    what: "fewer bytes than announced",
    parts: [header("/b", { size: 1_001n, sizeKnown: true }), chunk(0, BYTES)],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_ARGUMENT",
  },
  {
    what: "more bytes than announced",
    parts: [header("/b", { size: 999n, sizeKnown: true }), chunk(0, BYTES)],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_ARGUMENT",
  },
  {
    what: "an impossible size",
    parts: [header("/b", { size: 2n ** 64n - 1n, sizeKnown: true })],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_ARGUMENT",
  },
  { what: "a relative path", parts: [header("b")], code: Code.INVALID_ARGUMENT, reason: "BAD_ARGUMENT" },
  { what: "a path upwards", parts: [header("/../b")], code: Code.INVALID_ARGUMENT, reason: "BAD_NAME" },
  {
    what: "a name with a control character",
    parts: [header("/b\u0007")],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_NAME",
  },
  {
    what: "a name of 256 bytes",
    parts: [header(`/${"b".repeat(256)}`)],
    code: Code.INVALID_ARGUMENT,
    reason: "BAD_NAME",
  },
  {
    what: "the root directory",
    parts: [header("/")],
    code: Code.FAILED_PRECONDITION,
    reason: "IS_DIRECTORY",
  },
  { what: "a directory", parts: [header("/dir")], code: Code.FAILED_PRECONDITION, reason: "IS_DIRECTORY" },
  {
    what: "a place below a file",
    parts: [header("/file/b")],
    code: Code.FAILED_PRECONDITION,
    reason: "NOT_DIRECTORY",
  },
  { what: "a missing directory", parts: [header("/no/b")], code: Code.NOT_FOUND, reason: "NO_SUCH_PATH" },
  {
    what: "a taken name that must be free",
    parts: [header("/file", { onExists: OnExists.FAIL })],
    code: Code.ALREADY_EXISTS,
    reason: "PATH_EXISTS",
  },
  {
    what: "another version than the wanted one",
    parts: [header("/file", { ifMatch: "x-1" })],
    code: Code.FAILED_PRECONDITION,
    reason: "ETAG_MISMATCH",
  },
  {
    what: "a version of what is not there",
    parts: [header("/b", { ifMatch: "x-1" })],
    code: Code.FAILED_PRECONDITION,
    reason: "ETAG_MISMATCH",
  },
  {
    what: "another user's root",
    parts: [header("/b", { root: "user0@example.com" })],
    code: Code.PERMISSION_DENIED,
    reason: "NOT_SHARED",
  },
  {
    what: "a root that does not exist",
    parts: [header("/b", { root: "nobody@example.com" })],
    code: Code.PERMISSION_DENIED,
    reason: "NOT_SHARED",
  },
];

test("every bad upload gets its answer and changes nothing (D1, D15)", async (t) => {
  const user = await node.signIn("breaker@example.com");
  await user.call.createDirectory({ path: "/dir" });
  await user.call.createFile({ path: "/file", data: Buffer.from("kept") });
  const state = async () =>
    JSON.stringify(
      [(await user.call.listDir({ path: "/" })).entries, (await user.call.getQuota({})).usedBytes],
      (_k, v: unknown) => (typeof v === "bigint" ? String(v) : v),
    );
  const before = await state();
  for (const breach of BREACHES) {
    await t.test(breach.what, async () => {
      const refused = await refusal(user.upload(breach.parts));
      assert.deepEqual([refused.code, refused.reason], [breach.code, breach.reason]);
      assert.equal(await state(), before);
      assert.equal(node.node.service.ledger.promisedBytes, 0n);
      assert.equal(node.node.service.ledger.openAccounts, 0);
    });
  }
});

/** Eight uploads a round; GROVE_E2E_ROUNDS=60 reveals a crash by stream resets in most runs. */
const ROUNDS = Number(process.env["GROVE_E2E_ROUNDS"] ?? 10);

test("uploads broken off at random bytes, in random ways, leave the accounts and the disk as they were (A-05)", async () => {
  const user = await node.signIn("cutter@example.com");
  await user.call.createFile({ path: "/kept", data: Buffer.from("kept") });
  const state = async () => [
    (await user.call.getQuota({})).usedBytes,
    (await user.call.listDir({ path: "/" })).entries.length,
    node.node.storage.facts(),
    node.node.service.ledger.promisedBytes,
    node.node.service.ledger.openAccounts,
  ];
  const before = await state();
  const bytes = randomBytes(1_500_000);
  const cutOne = async (at: number): Promise<void> => {
    const path = at % 3 === 0 ? "/kept" : `/cut${at}`;
    const cutBytes = (at * 7_919_993) % bytes.length;
    const gone = new AbortController();
    const upload = async function* (): AsyncGenerator<UploadPart> {
      yield header(path, at % 2 === 0 ? { size: BigInt(bytes.length), sizeKnown: true } : {});
      for (let sent = 0; sent < cutBytes; sent += 50_000) {
        yield chunk(sent, bytes.subarray(sent, Math.min(cutBytes, sent + 50_000)));
      }
      if (at % 4 === 0) gone.abort();
      else if (at % 4 === 1) yield chunk(0, bytes, 1);
      else yield chunk(cutBytes, bytes.subarray(0, 10), 1);
    };
    await assert.rejects(user.call.uploadFile(upload(), { signal: gone.signal }));
  };
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(Array.from({ length: 8 }, (_, i) => cutOne(round * 8 + i + 1)));
  }
  for (let i = 0; i < 500 && node.node.service.ledger.openAccounts > 0; i++) await delay(10);
  assert.deepEqual(await state(), before);
  assert.equal(Buffer.from((await user.call.readFile({ path: "/kept" })).data).toString(), "kept");
});

test("none of these is an error of the node: only refusals are counted, as is a full quota (T4, D12)", async () => {
  const { email, call } = await node.signIn("full@example.com");
  const admin = await node.signIn("admin@example.com");
  assert.equal((await admin.call.setQuota({ username: email, quotaBytes: 8n })).success, true);
  await refusal(call.createFile({ path: "/nine", data: Buffer.alloc(9) }));
  const counts = node.node.telemetry.counts();
  assert.deepEqual([counts.errors, counts.failedWrites, counts.failedReads], [0, 0, 0]);
  assert.ok(counts.refused >= BREACHES.length);
  assert.ok(
    counts.writeOps >= counts.refused,
    "refusals are operations too, so that they thin out a share of errors",
  );
});
