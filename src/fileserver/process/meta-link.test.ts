// The node's side of the control plane against a scripted MetaServer on a real connection.
import assert from "node:assert/strict";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { GroveError } from "#base/errors.ts";
import { hurriedClock } from "#testing/hurried-clock.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import {
  type ClaimRootRequest,
  type HeartbeatRequest,
  MetaServer,
  type RegisterFileServerRequest,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { mapError } from "#wire/proto/map-error.ts";
import { refusal, startTestNode, type TestNode } from "./node.fixture.ts";

/** The scripted MetaServer's answers, and the requests that it received. */
interface Script {
  known: boolean;
  sendFull: boolean;
  refuse: GroveError | undefined;
  /** True to take registrations without an answer. */
  losesRegistrations: boolean;
  /** Answers a page; undefined for a MetaServer of 0.1.0, which takes each as a registration. */
  takesPage: ((request: RegisterFileServerRequest) => number | undefined) | undefined;
  /** The epoch of another process, which must be named; undefined for none. */
  heldEpoch: bigint | undefined;
  clusterId: string;
  home: { fsId: string; address: string };
  readonly registrations: RegisterFileServerRequest[];
  readonly heartbeats: HeartbeatRequest[];
  readonly claims: ClaimRootRequest[];
}

/** A root id for each user, as the MetaServer would keep it. */
const rootIdOf = (username: string) => `01ARZ3NDEKTSV4RRFFQ69G5FA${username.startsWith("a") ? "A" : "B"}`;

let server: GrpcServer;
let script: Script;
let port = 0;
let dataFolder = "";
let node: TestNode | undefined;

const startMeta = async (atPort = 0) => {
  server = new GrpcServer({ mapError });
  server.addService(MetaServer, {
    registerFileServer: (request) => {
      if (script.refuse !== undefined) throw script.refuse;
      script.registrations.push(request);
      if (script.losesRegistrations) throw new GroveError("STORE_UNAVAILABLE", "the answer is lost");
      if (script.heldEpoch !== undefined && request.knownEpoch !== script.heldEpoch)
        return { clusterId: script.clusterId, heldEpoch: script.heldEpoch };
      const nextPage = script.takesPage?.(request);
      if (nextPage !== undefined) return { clusterId: script.clusterId, nextPage };
      return { clusterId: script.clusterId, heartbeatSeconds: 1, epoch: BigInt(script.registrations.length) };
    },
    heartbeat: (request) => {
      if (script.refuse !== undefined) throw script.refuse;
      script.heartbeats.push(request);
      return { known: script.known, sendFull: script.sendFull, nowMs: BigInt(Date.now() + 60_000) };
    },
    claimRoot: (request) => {
      if (script.refuse !== undefined) throw script.refuse;
      script.claims.push(request);
      if (request.epoch < BigInt(script.registrations.length)) {
        script.losesRegistrations = false;
        throw new GroveError("FENCED", "an older epoch");
      }
      return { rootId: rootIdOf(request.username), ...script.home };
    },
  });
  port = (await server.listen({ host: "127.0.0.1", port: atPort })).port;
};
/** The MetaServer asks for a heartbeat each second; here five times as often. */
const startNode = () =>
  startTestNode({
    dataFolder,
    clock: hurriedClock(5),
    options: { metaservers: [`127.0.0.1:${port}`], advertise: "node.example.net:50051" },
  });

beforeEach(async () => {
  dataFolder = scratchFolder("grove-metalink-");
  script = {
    known: true,
    sendFull: false,
    refuse: undefined,
    losesRegistrations: false,
    takesPage: undefined,
    heldEpoch: undefined,
    clusterId: "cluster-1",
    home: { fsId: "n1", address: "node.example.net:50051" },
    registrations: [],
    heartbeats: [],
    claims: [],
  };
  await startMeta();
});
afterEach(async () => {
  await node?.stop();
  node = undefined;
  await server.close();
});

test("a node registers with all that the store can be rebuilt from, and beats (D19)", async () => {
  node = await startNode();
  const [first] = script.registrations;
  assert.deepEqual(
    [first?.fsId, first?.name, first?.grpcAddr, first?.clusterId, first?.roots.length, first?.diskReserve],
    ["n1", "n1", "node.example.net:50051", "", 0, 21_474_836_480n],
  );
  assert.equal(first?.dataId, node.node.storage.dataId);
  assert.match(first?.instanceId ?? "", /^[0-9A-Z]{26}$/);
  await node.signIn("a@example.com");
  await until(() => script.heartbeats.some((beat) => beat.rootsVersion === 1n && beat.epoch === 1n));
  const metrics = (await (await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics`)).json()) as Record<
    string,
    number
  >;
  assert.ok(Math.abs((metrics["clock_skew_ms"] ?? 0) - 60_000) < 5_000);
});

test("known=false and send_full each bring a full registration with the roots (D19)", async () => {
  node = await startNode();
  await node.signIn("a@example.com");
  script.known = false;
  await until(() => script.registrations.length >= 2);
  script.known = true;
  const again = script.registrations.at(-1);
  assert.deepEqual(
    again?.roots.map((root) => [root.owner, root.rootId]),
    [["a@example.com", rootIdOf("a@example.com")]],
  );
  assert.equal(again?.clusterId, "cluster-1");
  await delay(50);
  const before = script.registrations.length;
  script.sendFull = true;
  await until(() => script.registrations.length > before);
});

test("after a registration whose answer was lost comes another, and no heartbeat of the epoch before (D19)", async () => {
  node = await startNode();
  await until(() => script.heartbeats.length > 0);
  script.losesRegistrations = true;
  script.known = false;
  await until(() => script.registrations.length >= 3);
  const heard = script.heartbeats.length;
  script.losesRegistrations = false;
  script.known = true;
  await until(() => script.heartbeats.length > heard);
  assert.equal(script.heartbeats[heard]?.epoch, BigInt(script.registrations.length));
  assert.ok(script.heartbeats.slice(0, heard).every((beat) => beat.epoch === 1n));
});

test("a claim that this process's own registration overtook is made again, and fences nobody (D19)", async () => {
  node = await startNode();
  script.losesRegistrations = true;
  script.known = false;
  await until(() => script.registrations.length >= 2);
  script.known = true;
  await node.signIn("a@example.com");
  assert.ok(script.claims.length >= 2);
  assert.equal(script.claims.at(-1)?.epoch, BigInt(script.registrations.length));
  assert.equal(node.node.state.isFenced, false);
});

test("a node that is told of the process before it names that one's epoch, and then its own (M-02)", async () => {
  script.heldEpoch = 41n;
  node = await startNode();
  assert.deepEqual(
    script.registrations.map(({ knownEpoch, lastEpoch }) => [knownEpoch, lastEpoch]),
    [
      [0n, 0n],
      [41n, 0n],
    ],
  );
  await until(() => script.heartbeats.length > 0);
  assert.equal(script.heartbeats[0]?.epoch, 2n);
  script.heldEpoch = undefined;
  script.known = false;
  await until(() => script.registrations.length > 2);
  assert.deepEqual([script.registrations[2]?.knownEpoch, script.registrations[2]?.lastEpoch], [2n, 2n]);
});

test("while others register with its id all the time a node asks a few times, serves, and asks again (D19)", async () => {
  const answer = Object.getOwnPropertyDescriptor(script, "heldEpoch");
  let next = 1n;
  Object.defineProperty(script, "heldEpoch", { configurable: true, get: () => next++ });
  node = await startNode();
  assert.equal(script.registrations.length, 3);
  assert.equal(script.heartbeats.length, 0);
  Object.defineProperty(script, "heldEpoch", answer ?? {});
  await until(() => script.heartbeats.length > 0);
});

test("a root that is assigned elsewhere makes a visitor, who is told where it is (D19)", async () => {
  node = await startNode();
  script.home = { fsId: "n2", address: "other.example.net:50052" };
  const visitor = await node.signIn("v@example.com");
  assert.equal(visitor.registered.rootId, "");
  for (const call of [
    () => visitor.call.getAttr({ path: "/" }),
    () => visitor.call.createFile({ path: "/f" }),
    () => visitor.call.getQuota({}),
    () => visitor.download({ path: "/f" }),
  ]) {
    const refused = await refusal(call());
    assert.deepEqual([refused.code, refused.reason], [Code.FAILED_PRECONDITION, "WRONG_NODE"]);
    assert.equal(refused.error.metadata.get("svc-address"), "other.example.net:50052");
  }
  assert.equal(node.node.storage.root("v@example.com"), undefined);
});

test("with the MetaServer down existing roots work on and new ones are UNAVAILABLE; when it is back, both work (D19, M-01)", async () => {
  node = await startNode();
  const user = await node.signIn("a@example.com");
  await server.close();
  await user.call.createFile({ path: "/f", data: Buffer.from("x") });
  await (await node.signIn("a@example.com")).call.getAttr({ path: "/f" });
  const refused = await refusal(node.signIn("new@example.com"));
  assert.deepEqual([refused.code, refused.reason], [Code.UNAVAILABLE, "STORE_UNAVAILABLE"]);
  await startMeta(port);
  for (let i = 0; i < 100 && node.node.storage.root("new@example.com") === undefined; i++) {
    await delay(50);
    await node.signIn("new@example.com").catch(() => undefined);
  }
  assert.notEqual(node.node.storage.root("new@example.com"), undefined);
});

test("a node starts and serves its roots while there is no MetaServer at all (D19)", async () => {
  node = await startNode();
  await node.signIn("a@example.com");
  await node.stop();
  await server.close();
  node = await startNode();
  await (await node.signIn("a@example.com")).call.getAttr({ path: "/" });
});

test("a fenced node stops serving, running streams included, and does not register again (D19)", async () => {
  node = await startNode();
  const user = await node.signIn("a@example.com");
  script.refuse = new GroveError("FENCED", "an older epoch");
  const fenced = node.node.state;
  await until(() => fenced.isFenced);
  assert.equal((await refusal(user.call.getAttr({ path: "/" }))).code, Code.UNAVAILABLE);
  script.refuse = undefined;
  const heard = script.registrations.length + script.heartbeats.length;
  await delay(600);
  assert.equal(script.registrations.length + script.heartbeats.length, heard);
  const ready = await fetch(`http://127.0.0.1:${node.node.metricsPort}/ready`);
  assert.equal(ready.status, 503);
});

test("the cluster's id is remembered over a restart, and another cluster's refusal is survived (D19)", async () => {
  node = await startNode();
  await node.signIn("a@example.com");
  await node.stop();
  script.refuse = new GroveError("CLUSTER_MISMATCH", "another cluster");
  node = await startNode();
  await (await node.signIn("a@example.com")).call.getAttr({ path: "/" });
  script.refuse = undefined;
  await until(() => script.registrations.length === 2);
  assert.equal(script.registrations[1]?.clusterId, "cluster-1");
});

test("a node that stops says that it drains (D19)", async () => {
  node = await startNode();
  await node.stop();
  node = undefined;
  assert.equal(script.heartbeats.at(-1)?.draining, true);
});

test("a MetaServer that answers as another cluster is not believed: the data folder stays where it is, and /ready says why (D19)", async () => {
  node = await startNode();
  await node.stop();
  script.clusterId = "cluster-2";
  node = await startNode();
  await until(() => script.registrations.length >= 2);
  const ready = async (): Promise<{ ready: boolean; reasons: string[] }> =>
    (await (await fetch(`http://127.0.0.1:${node?.node.metricsPort}/ready`)).json()) as {
      ready: boolean;
      reasons: string[];
    };
  assert.match((await ready()).reasons.join(), /CLUSTER_MISMATCH.*cluster-1.*cluster-2/);
  assert.equal(script.heartbeats.filter(({ epoch }) => epoch > 1n).length, 0);
  assert.equal((await readFile(join(dataFolder, "cluster_id"), "utf8")).trim(), "cluster-1");
  script.clusterId = "cluster-1";
  await until(() => script.heartbeats.length > 0 && script.heartbeats.at(-1)?.epoch !== 1n);
  assert.deepEqual(await ready(), { ready: true, reasons: [] });
});

test("heartbeats say which process they are of, so that only it may change its key (D19)", async () => {
  node = await startNode();
  await until(() => script.heartbeats.length > 0);
  assert.equal(script.heartbeats[0]?.instanceId, script.registrations[0]?.instanceId);
  assert.notEqual(script.heartbeats[0]?.instanceId, "");
});

/** A data folder with enough roots for a registration of three pages, made once, and their owners. */
let manyRoots: { readonly folder: string; readonly owners: readonly string[] } | undefined;
const withManyRoots = async (): Promise<readonly string[]> => {
  if (manyRoots === undefined) {
    node = await startNode();
    const owners = Array.from({ length: 15_000 }, (_, at) => `u${at}@${"department.".repeat(4)}example.com`);
    const { storage } = node.node;
    await Promise.all(
      owners.map((owner, at) => storage.createRoot({ owner, rootId: String(at).padStart(26, "0") })),
    );
    await node.stop();
    manyRoots = { folder: dataFolder, owners };
    script.registrations.length = 0;
    script.heartbeats.length = 0;
  }
  dataFolder = scratchFolder("grove-metalink-");
  await cp(manyRoots.folder, dataFolder, { recursive: true, preserveTimestamps: true });
  return manyRoots.owners;
};
const pagesOf = (requests: readonly RegisterFileServerRequest[]) =>
  requests.map(({ registration, page, more }) => [registration, page, more]);
const ownersOf = (requests: readonly RegisterFileServerRequest[]) =>
  requests.flatMap(({ roots }) => roots.map(({ owner }) => owner)).toSorted();

test("what has no room in one registration comes in pages, and the page that is asked for is sent again (D19)", async () => {
  const owners = await withManyRoots();
  let isLost = true;
  const kept: RegisterFileServerRequest[] = [];
  script.takesPage = (request) => {
    if (isLost && request.page === 1) {
      // Like a store that has lost the first page.
      isLost = false;
      kept.length = 0;
      return 0;
    }
    kept.push(request);
    return request.more ? request.page + 1 : undefined;
  };
  node = await startNode();
  await until(() => script.heartbeats.length > 0);
  assert.deepEqual(pagesOf(script.registrations), [
    [1n, 0, true],
    [1n, 1, true],
    [1n, 0, true],
    [1n, 1, true],
    [1n, 2, false],
  ]);
  assert.deepEqual(ownersOf(kept), owners.toSorted());
  assert.equal(script.heartbeats[0]?.epoch, 5n, "that of the last answer");
  script.heldEpoch = 7n;
  script.known = false;
  await until(() => script.registrations.length >= 9);
  assert.deepEqual(
    script.registrations
      .slice(5, 9)
      .map(({ registration, page, knownEpoch }) => [registration, page, knownEpoch]),
    [
      [2n, 0, 5n],
      [2n, 0, 7n],
      [2n, 1, 7n],
      [2n, 2, 7n],
    ],
  );
});

test("a MetaServer that forgets every page is asked no more than three times for each, and again with the next beat", async () => {
  await withManyRoots();
  script.takesPage = () => 0;
  node = await startNode();
  await until(() => script.registrations.length > 9);
  assert.deepEqual(
    pagesOf(script.registrations.slice(0, 10)).map(([registration]) => registration),
    [...Array.from({ length: 9 }, () => 1n), 2n],
  );
  assert.equal(script.heartbeats.length, 0);
});

test("a MetaServer of 0.1.0, which knows no pages, is told all roots one registration after the other (D18)", async () => {
  const owners = await withManyRoots();
  node = await startNode();
  await until(() => script.heartbeats.length > 0);
  assert.deepEqual(ownersOf(script.registrations.slice(0, 3)), owners.toSorted());
  assert.equal(script.heartbeats[0]?.epoch, 3n);
});

test("a user whose root may lie on a node that has not listed its own is told so, and to come again (D19)", async () => {
  node = await startNode();
  script.refuse = new GroveError("STARTING", "new users wait until these nodes have listed their roots: n7");
  const { code, reason, error } = await refusal(node.signIn("u@example.com"));
  assert.deepEqual([code, reason], [Code.UNAVAILABLE, "STARTING"]);
  assert.match(error.message, /n7/);
  assert.equal(error.metadata.get("svc-retry-after-ms"), "5000");
});
