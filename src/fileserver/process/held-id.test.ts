// A node whose id another process holds: its log, its refusals, and its proof as successor (D19, M-02).
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { type LogFields, silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Code } from "#wire/framing/status.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { MetaServer, type RegisterFileServerRequest } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import { refusal, startTestNode, type TestNode } from "./node.fixture.ts";

/** The MetaServer's refusal instead of an answer, and the requests that it took. */
let refuse: GroveError | undefined;
let registrations: RegisterFileServerRequest[] = [];
let server: GrpcServer;
let port = 0;
let dataFolder = "";
let node: TestNode | undefined;
const lines: [event: string, fields: LogFields][] = [];

async function startNode(): Promise<TestNode> {
  const warn = (event: string, fields: LogFields = {}): void => void lines.push([event, fields]);
  const options = { metaservers: [`127.0.0.1:${port}`] };
  node = await startTestNode({ dataFolder, log: { ...silentLogger, warn }, options });
  return node;
}

async function stopNode(): Promise<void> {
  await node?.stop();
  node = undefined;
}

beforeEach(async () => {
  dataFolder = scratchFolder("grove-held-");
  refuse = undefined;
  registrations = [];
  lines.length = 0;
  server = new GrpcServer({ mapError });
  server.addService(MetaServer, {
    registerFileServer: (request) => {
      if (refuse !== undefined) throw refuse;
      registrations.push(request);
      return { clusterId: "cluster-1", heartbeatSeconds: 1, epoch: BigInt(registrations.length) };
    },
    heartbeat: () => ({ known: true }),
    claimRoot: () => ({ rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", fsId: "n1", address: "127.0.0.1:1" }),
  });
  port = (await server.listen({ host: "127.0.0.1", port: 0 })).port;
});
afterEach(async () => {
  await stopNode();
  await server.close();
});

const HELD = new GroveError("NODE_ID_HELD", "another FileServer is running as n1");

test("while another process holds its id a node says what it waits for, to its operator and to new users (D19)", async () => {
  refuse = HELD;
  const held = await startNode();
  const ready = (): Promise<Response> => fetch(`http://127.0.0.1:${held.node.metricsPort}/ready`);
  const [told] = lines.filter(([event]) => event === "metaserver_failed");
  assert.equal(told?.[1]["reason"], "NODE_ID_HELD");
  const waits =
    /another FileServer is running as n1; it waits until that one's lease ends, at most 30 s after/;
  assert.match(String(told?.[1]["error"]), waits);
  assert.match(await (await ready()).text(), waits);
  const { code, reason, error } = await refusal(held.signIn("u@example.com"));
  assert.deepEqual([code, reason], [Code.UNAVAILABLE, "STARTING"]);
  assert.match(error.message, /n1.* waits for the one before it to be given up, up to 30 s after/);
  assert.equal(error.metadata.get("svc-retry-after-ms"), "5000");
  refuse = undefined;
  await held.signIn("u@example.com");
  assert.equal((await ready()).status, 200);
});

test("a node names the process that registered from its data folder last, also when others tried in between (M-02)", async () => {
  await startNode();
  await stopNode();
  refuse = HELD;
  await startNode();
  await stopNode();
  refuse = undefined;
  await startNode();
  const [first, second] = registrations;
  assert.deepEqual([first?.predecessorId, second?.predecessorId], ["", first?.instanceId]);
  assert.notEqual(second?.instanceId, first?.instanceId);
});
