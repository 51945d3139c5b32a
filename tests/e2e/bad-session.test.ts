// Tests that invalid sessions and ID tokens are refused with their reason and change nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import {
  DownloadRequestSchema,
  EndSessionRequestSchema,
  GetAttrRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { bytes, header, STATUS, signIn, TwoUsers } from "./two-users.ts";
import { type Answer, type CallSettings, Wire } from "./wire.ts";

let users: TwoUsers;
before(async () => {
  users = await TwoUsers.start();
});
after(() => users.close());

test("a session that is missing, unknown, misspelt, ended or evicted is refused by its reason (spec 2.3, D1)", async () => {
  const attr = [bytes(GetAttrRequestSchema, { path: "/" })];
  const unknown = `sst_${randomBytes(32).toString("base64url")}`;
  const cases: [title: string, settings: CallSettings, reason: string][] = [
    ["none", {}, "SESSION_MISSING"],
    ["empty", { token: "" }, "SESSION_MISSING"],
    ["another scheme", { headers: { authorization: `Basic ${users.alice}` } }, "SESSION_MISSING"],
    ["never given", { token: unknown }, "SESSION_UNKNOWN"],
    [
      "one letter off",
      { token: users.alice.slice(0, -1) + (users.alice.endsWith("A") ? "E" : "A") },
      "SESSION_UNKNOWN",
    ],
    ["other case", { token: users.alice.toLowerCase() }, "SESSION_UNKNOWN"],
    ["an ID token", { token: "mock-jwt.alice@example.com" }, "SESSION_UNKNOWN"],
    [
      "two of them",
      { headers: { authorization: `Bearer ${users.alice}, Bearer ${users.alice}` } },
      "SESSION_UNKNOWN",
    ],
    ["very long", { token: "x".repeat(6_000) }, "SESSION_UNKNOWN"],
  ];
  for (const [title, settings, reason] of cases) {
    await users.refused(
      () => users.wire.call("GetAttr", attr, settings),
      STATUS.unauthenticated,
      reason,
      title,
    );
    await users.refused(
      () => users.wire.call("UploadFile", [header("/x")], settings),
      STATUS.unauthenticated,
      reason,
      title,
    );
  }
  const ended = await signIn(users.wire, "dora@example.com");
  await users.wire.call("EndSession", [bytes(EndSessionRequestSchema, {})], { token: ended });
  await users.refused(
    () => users.wire.call("GetAttr", attr, { token: ended }),
    STATUS.unauthenticated,
    "SESSION_UNKNOWN",
    "ended",
  );
  const first = await signIn(users.wire, "dora@example.com");
  for (let count = 0; count < 5; count++) await signIn(users.wire, "dora@example.com");
  await users.refused(
    () => users.wire.call("GetAttr", attr, { token: first }),
    STATUS.unauthenticated,
    "SESSION_EVICTED",
    "evicted",
  );
});

test("a session used from another address is refused, reported once, and lives on where it belongs (spec 3.4, D22)", async () => {
  const elsewhere = await Wire.connect(users.node.address, "127.0.0.2");
  try {
    for (const [method, message] of [
      ["GetAttr", bytes(GetAttrRequestSchema, { path: "/" })],
      ["UploadFile", header("/docs/x")],
      ["DownloadFile", bytes(DownloadRequestSchema, { path: "/docs/small" })],
      ["EndSession", bytes(EndSessionRequestSchema, { everywhere: true })],
    ] as const) {
      const run = (): Promise<Answer> => elsewhere.call(method, [message], { token: users.alice });
      await users.refused(run, STATUS.permissionDenied, "IP_MISMATCH", method);
    }
  } finally {
    elsewhere.close();
  }
  const events = (await (await fetch(`${users.node.metricsUrl}/security-events`)).json()) as {
    events?: unknown;
  };
  const text = JSON.stringify(events);
  const found = [...text.matchAll(/"type":"ip_mismatch"/g)];
  assert.equal(found.length, 1, text);
  assert.match(text, /"ip_bound":"127\.0\.0\.1","ip_seen":"127\.0\.0\.2"/);
  assert.ok(!text.includes(users.alice));
  assert.equal(
    (await users.asAlice("GetAttr", [bytes(GetAttrRequestSchema, { path: "/" })])).code,
    STATUS.ok,
  );
});
