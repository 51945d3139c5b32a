// Replication of a node's shares to a scripted MetaServer on a real connection: present, absent, late.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { REGISTERED_GRANTS_MAX_BYTES } from "#fileserver/control/share-replicator.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import {
  MetaServer,
  type RegisterFileServerRequest,
  type RootShareRequest,
  type RootUnshareRequest,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import { startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const OWNER = "alice@example.com";
const ROOT_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

let server: GrpcServer | undefined;
let port = 0;
let dataFolder = "";
let node: TestNode | undefined;
/** The MetaServer's list, by "user path". */
let listed: Map<string, bigint>;
let registrations: RegisterFileServerRequest[];
let refuse: GroveError | undefined;
/** True to take requests without an answer. */
let losesAnswers = false;
let isFenced = false;

async function startMeta(): Promise<void> {
  const told = (granted: boolean) => (request: RootShareRequest | RootUnshareRequest) => {
    if (refuse !== undefined) throw refuse;
    if (request.epoch !== BigInt(registrations.length)) {
      isFenced = true;
      throw new GroveError("FENCED", "an older epoch");
    }
    const key = `${request.user} ${request.path}`;
    if (granted) listed.set(key, request.version);
    else listed.delete(key);
    if (losesAnswers) throw new GroveError("STORE_UNAVAILABLE", "the answer is lost");
    return {};
  };
  server = new GrpcServer({ mapError });
  server.addService(MetaServer, {
    registerFileServer: (request) => {
      registrations.push(request);
      listed.clear();
      for (const root of request.roots) {
        for (const { user, path } of root.grants) listed.set(`${user} ${path}`, root.version);
      }
      return { clusterId: "c", heartbeatSeconds: 1, epoch: BigInt(registrations.length) };
    },
    heartbeat: () => ({ known: true, sendFull: false, nowMs: BigInt(Date.now()) }),
    claimRoot: () => ({ rootId: ROOT_ID, fsId: "n1", address: "n1.example.net:50051" }),
    rootShare: told(true),
    rootUnshare: told(false),
  });
  port = (await server.listen({ host: "127.0.0.1", port })).port;
}

async function stopMeta(): Promise<void> {
  await server?.close();
  server = undefined;
}

async function startNode(): Promise<TestUser> {
  node = await startTestNode({
    dataFolder,
    options: { metaservers: [`127.0.0.1:${port}`], advertise: "n1.example.net:50051" },
  });
  return node.signIn(OWNER);
}

const lists =
  (...keys: string[]) =>
  () =>
    [...listed.keys()].toSorted().join() === keys.join();

beforeEach(async () => {
  dataFolder = scratchFolder("grove-replicator-");
  listed = new Map();
  registrations = [];
  refuse = undefined;
  losesAnswers = false;
  isFenced = false;
  port = 0;
  await startMeta();
});
afterEach(async () => {
  await node?.stop();
  node = undefined;
  await stopMeta();
});

test("once Share has answered, the MetaServer knows; every change of a path follows (D19)", async () => {
  const alice = await startNode();
  await alice.call.createDirectory({ path: "/docs" });
  await alice.call.createDirectory({ path: "/docs/inner" });
  await alice.call.share({ path: "/docs", user: "bob@example.com" });
  assert.ok(lists("bob@example.com /docs")());
  await alice.call.share({ path: "/docs/inner", user: "carol@example.com" });
  await alice.call.rename({ path: "/docs", targetPath: "/papers" });
  await until(lists("bob@example.com /papers", "carol@example.com /papers/inner"));
  await alice.call.unshare({ path: "/papers", user: "bob@example.com" });
  await until(lists("carol@example.com /papers/inner"));
  await alice.call.trashFile({ path: "/papers/inner" });
  await until(lists());
  await alice.call.share({ path: "/papers", user: "bob@example.com" });
  await alice.call.deleteFile({ path: "/papers", recursive: true });
  await until(lists());
  assert.equal(registrations.length, 1, "one by one, without a new registration");
});

test("what changes while the MetaServer is away is told when it is back, and Share does not wait for it (M-01)", async () => {
  const alice = await startNode();
  for (const path of ["/a", "/b"]) await alice.call.createDirectory({ path });
  await alice.call.share({ path: "/a", user: "bob@example.com" });
  await stopMeta();
  await alice.call.unshare({ path: "/a", user: "bob@example.com" });
  await alice.call.share({ path: "/b", user: "bob@example.com" });
  await startMeta();
  await until(lists("bob@example.com /b"));
});

test("what a MetaServer refuses for now is told again, in the epoch of that time, and never fences the node", async () => {
  const alice = await startNode();
  await alice.call.createDirectory({ path: "/a" });
  refuse = new GroveError("STARTING", "not yet");
  await alice.call.share({ path: "/a", user: "bob@example.com" });
  assert.ok(lists()());
  refuse = undefined;
  await until(lists("bob@example.com /a"));
  assert.equal(isFenced, false);
});

test("of a change whose answer was lost the MetaServer hears what became of it, whichever way (M-01)", async () => {
  const alice = await startNode();
  const bob = { path: "/a", user: "bob@example.com" };
  await alice.call.createDirectory({ path: "/a" });
  losesAnswers = true;
  await alice.call.share(bob);
  await until(lists("bob@example.com /a"));
  refuse = new GroveError("STARTING", "not yet");
  await alice.call.unshare(bob);
  losesAnswers = false;
  refuse = undefined;
  await until(lists());
  await alice.call.share(bob);
  await until(lists("bob@example.com /a"));
  losesAnswers = true;
  await alice.call.unshare(bob);
  await until(lists());
  refuse = new GroveError("STARTING", "not yet");
  await alice.call.share(bob);
  losesAnswers = false;
  refuse = undefined;
  await until(lists("bob@example.com /a"));
});

test("a grant that is refused for good stands in nobody's way", async () => {
  const alice = await startNode();
  for (const path of ["/a", "/b"]) await alice.call.createDirectory({ path });
  refuse = new GroveError("BAD_ARGUMENT", "never");
  await alice.call.share({ path: "/a", user: "bob@example.com" });
  refuse = undefined;
  await alice.call.share({ path: "/b", user: "bob@example.com" });
  await until(lists("bob@example.com /b"));
});

test("a restarted node tells everything with its registration (D19)", async () => {
  let alice = await startNode();
  await alice.call.createDirectory({ path: "/a" });
  await alice.call.share({ path: "/a", user: "bob@example.com" });
  await stopMeta();
  await alice.call.rename({ path: "/a", targetPath: "/b" });
  await alice.call.share({ path: "/b", user: "carol@example.com" });
  await node?.stop();
  await startMeta();
  alice = await startNode();
  await until(lists("bob@example.com /b", "carol@example.com /b"));
  const version = registrations.at(-1)?.roots[0]?.version ?? 0n;
  await alice.call.unshare({ path: "/b", user: "bob@example.com" });
  await until(lists("carol@example.com /b"));
  await alice.call.share({ path: "/b", user: "dave@example.com" });
  assert.ok((listed.get("dave@example.com /b") ?? 0n) > version, "versions go on where they were");
});

test("a registration that has no room for all grants is followed by the rest", async () => {
  const alice = await startNode();
  let path = "";
  // Twelve levels of 255 bytes: each grant takes 3 KB of the registration.
  for (let level = 0; level < 12; level++) {
    path += `/${"d".repeat(255)}`;
    await alice.call.createDirectory({ path });
  }
  const count = Math.ceil(REGISTERED_GRANTS_MAX_BYTES / path.length) + 5;
  const users = Array.from({ length: count }, (_, index) => `u${index}@example.com`);
  for (let at = 0; at < count; at += 200) {
    await alice.call.createDirectory({ path: `${path}/${at}` });
    await Promise.all(
      users.slice(at, at + 200).map((user) => alice.call.share({ path: `${path}/${at}`, user })),
    );
  }
  await until(() => listed.size === count);
  await node?.stop();
  listed.clear();
  await startNode();
  assert.equal(registrations.at(-1)?.roots[0]?.grants.length, 0);
  await until(() => listed.size === count);
});
