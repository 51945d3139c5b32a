// One request's id: from the client's metadata into log, audit, refusal trailers, and on to the MetaServer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { REQUEST_ID_HEADER, withRequestId } from "#base/request-scope.ts";
import { createLogger, type ProcessLogger } from "#os/logger.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { hurriedClock } from "#testing/hurried-clock.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { forwardRequestId } from "#wire/grpc/request-ids.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let folder: string;
let log: ProcessLogger;
let node: TestNode;
let user: TestUser;
before(async () => {
  folder = scratchFolder("grove-request-");
  log = createLogger({ destination: { file: join(folder, "log") }, level: "debug" });
  node = await startTestNode({ log, env: { SVC_ADMIN_EMAIL: "admin@example.com" } });
  user = await node.signIn("a@example.com");
});
after(async () => {
  await node.stop();
  await log.close();
});

const bearer = (id: string) => ({
  metadata: { authorization: `Bearer ${user.token}`, [REQUEST_ID_HEADER]: id },
});

/** Lines of the log, once one of them matches. */
async function lines(fits: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>[]> {
  for (;;) {
    const text = readFileSync(join(folder, "log"), "utf8");
    const all = text.split("\n").filter((line) => line !== "");
    const found = all.map((line) => JSON.parse(line) as Record<string, unknown>).filter(fits);
    if (found.length > 0) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function refusedId(id: string): Promise<string | undefined> {
  try {
    await user.call.getAttr({ path: "/nothing" }, bearer(id));
  } catch (error) {
    if (error instanceof StatusError) return error.metadata.get(REQUEST_ID_HEADER);
  }
  return undefined;
}

test("a refusal carries the client's id in its trailers and its log line, beside its reason and no token (D1)", async () => {
  assert.equal(await refusedId("client-id-1"), "client-id-1");
  const [line] = await lines(({ request_id }) => request_id === "client-id-1");
  assert.deepEqual(
    [line?.["event"], line?.["level"], line?.["method"], line?.["reason"]],
    ["call_refused", "debug", "GetAttr", "NO_SUCH_PATH"],
  );
  assert.ok(!readFileSync(join(folder, "log"), "utf8").includes(user.token));
});

test("an id that is too long, too short or could forge a log line is not taken over; 64 characters are", async () => {
  for (const bad of [
    "short",
    "x".repeat(65),
    'quote"quote"',
    "blank in between",
    "-starts-wrong",
    "<script>alert(1)",
  ]) {
    assert.match((await refusedId(bad)) ?? "", /^[0-9a-z]{13}-[0-9a-z]+$/, bad);
  }
  assert.equal(await refusedId("x".repeat(64)), "x".repeat(64));
  assert.equal(await refusedId("x".repeat(8)), "x".repeat(8));
});

test("what is done during a call is logged and audited with its id, whatever else runs meanwhile (D24)", async () => {
  const admin = await node.signIn("admin@example.com");
  const set = (id: string, quotaBytes: bigint) =>
    admin.call.setQuota(
      { username: "a@example.com", quotaBytes },
      { metadata: { authorization: `Bearer ${admin.token}`, [REQUEST_ID_HEADER]: id } },
    );
  await Promise.all([set("quota-one-1", 1_000n), set("quota-two-2", 2_000n), set("quota-three-3", 3_000n)]);
  for (const [id, quota] of [
    ["quota-one-1", 1_000],
    ["quota-two-2", 2_000],
    ["quota-three-3", 3_000],
  ] as const) {
    const [line] = await lines(({ event, request_id }) => event === "quota_set" && request_id === id);
    assert.equal(line?.["quota_bytes"], quota);
  }
  // The audit log writes lines in groups, a moment later.
  const requests = new Set<string | undefined>();
  while (requests.size < 3) {
    const answer = await fetch(`http://127.0.0.1:${node.node.metricsPort}/audit`);
    const { entries } = (await answer.json()) as { entries: { act: string; request?: string }[] };
    for (const { act, request } of entries) if (act === "quota.set") requests.add(request);
  }
  assert.deepEqual(requests, new Set(["quota-one-1", "quota-two-2", "quota-three-3"]));
});

test("a call made on behalf of a request carries its id on, and one that is not carries none", async () => {
  const seen: (string | undefined)[] = [];
  const server = new GrpcServer();
  server.addService(MetaServer, {
    heartbeat: (_request, context) => {
      seen.push(context.metadata.get(REQUEST_ID_HEADER));
      return {};
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`], interceptors: [forwardRequestId] });
  const client = createClient(MetaServer, channel);
  try {
    await client.heartbeat({});
    await withRequestId("from-a-client", () => client.heartbeat({}));
    assert.deepEqual(seen, [undefined, "from-a-client"]);
  } finally {
    channel.close();
    await server.close();
  }
});

test("what a heartbeat brings belongs to no request, also where one has called for the heartbeat (D24)", async () => {
  const seen: (string | undefined)[] = [];
  const decided = { username: "gone@example.com", disabled: true, version: 1n, reason: "left", setBy: "b" };
  const server = new GrpcServer();
  server.addService(MetaServer, {
    registerFileServer: () => ({ clusterId: "cluster-1", heartbeatSeconds: 1, epoch: 1n }),
    heartbeat: (_request, context) => {
      seen.push(context.metadata.get(REQUEST_ID_HEADER));
      return { known: true, userStatesDiffer: true };
    },
    // Known elsewhere from the moment on at which a decision here has called for a heartbeat.
    exchangeUserStates: ({ states }) => ({ states: states.length === 0 ? [] : [decided] }),
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const other = await startTestNode({
    clock: hurriedClock(5),
    env: { ADMIN_PASSWORD: "a long password" },
    options: { metaservers: [`127.0.0.1:${port}`], advertise: "node.example.net:50051" },
  });
  const audited = async (): Promise<{ subject: string; request?: string }[]> => {
    const answer = await fetch(`http://127.0.0.1:${other.node.metricsPort}/audit`);
    const { entries } = (await answer.json()) as { entries: { act: string; subject: string }[] };
    return entries.filter(({ act }) => act === "user.disable");
  };
  try {
    await other.anonymous.setUserState(
      { state: { username: "here@example.com", disabled: true, reason: "left" } },
      {
        metadata: {
          "x-admin-password-hash": adminPasswordHash("a long password"),
          [REQUEST_ID_HEADER]: "decided-here",
        },
      },
    );
    await until(async () => (await audited()).length === 2);
    const beats = seen.length;
    await until(() => seen.length > beats);
    assert.deepEqual(
      (await audited()).map(({ subject, request }) => [subject, request]),
      [
        ["here@example.com", "decided-here"],
        ["gone@example.com", undefined],
      ],
    );
    assert.deepEqual(new Set(seen), new Set([undefined]));
  } finally {
    await other.stop();
    await server.close();
  }
});
