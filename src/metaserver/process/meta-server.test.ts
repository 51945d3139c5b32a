// The answers of a MetaServer to users and FileServers over a real connection.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { ErrorInfoSchema } from "#wire/framing/gen/google/rpc/error_details_pb.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { createClient } from "#wire/grpc/client.ts";
import { GetRootsResponseSchema, MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { as, nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";

const TIMEOUT = { timeout: 60_000 };

test(
  "a user's first Navigate places the root on the node with the most room, for 12 h (D19, T20)",
  TIMEOUT,
  async (t) => {
    const client = (await startForTest(t)).connect();
    await client.registerFileServer(nodeMessage("a"));
    await client.registerFileServer(nodeMessage("b", { diskFree: (1n << 39n) + 1n }));
    await client.registerFileServer(nodeMessage("c", { diskFree: 1n << 40n, diskReserve: 1n << 40n }));
    const route = await client.navigate({}, as("Alice@Example.com"));
    assert.equal(route.fsId, "b");
    assert.equal(route.address, "b.example.com:50051");
    assert.equal(route.ttlSeconds, 43_200);
    assert.equal(route.path, "/");
    assert.equal(route.readOnly, false);
    const again = await client.navigate({ root: "ALICE@example.com", path: "/x/" }, as("alice@example.com"));
    assert.deepEqual([again.rootId, again.fsId, again.path], [route.rootId, "b", "/x"]);
    const { roots } = await client.getRoots({}, as("alice@example.com"));
    assert.deepEqual(
      roots.map(({ owner, rootId, path, fsId, address }) => [owner, rootId, path, fsId, address]),
      [["alice@example.com", route.rootId, "/", "b", "b.example.com:50051"]],
    );
  },
);

test("user calls need a valid ID token as bearer metadata (spec 4.5)", TIMEOUT, async (t) => {
  const { connect, directory } = await startForTest(t);
  const client = connect();
  await client.registerFileServer(nodeMessage("a"));
  for (const authorization of [
    "",
    "mock-jwt.a@b.example",
    "Basic mock-jwt.a@b.example",
    "Bearer",
    "Bearer mock-jwt.nonsense",
  ]) {
    await refused(
      client.navigate({}, { metadata: { authorization } }),
      Code.UNAUTHENTICATED,
      "TOKEN_REJECTED",
    );
    await refused(
      client.getRoots({}, { metadata: { authorization } }),
      Code.UNAUTHENTICATED,
      "TOKEN_REJECTED",
    );
  }
  await refused(client.navigate({}), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  assert.equal((await directory.nodes())[0]?.rootCount, 0);
});

test("another user's root answers the same whether or not it exists (D1)", TIMEOUT, async (t) => {
  const client = (await startForTest(t)).connect();
  await client.registerFileServer(nodeMessage("a"));
  await client.navigate({}, as("alice@example.com"));
  const messages = await Promise.all(
    ["alice@example.com", "nobody@example.com"].map((root) =>
      client.navigate({ root }, as("bob@example.com")).then(
        () => "answered",
        (error: unknown) => {
          assert.ok(error instanceof StatusError);
          // Each call has an id of its own, for any method.
          const told = [...error.metadata.entries()].filter(([name]) => name !== "x-request-id");
          return [error.code, error.message, ...told].join();
        },
      ),
    ),
  );
  assert.equal(messages[0], messages[1]);
  await refused(
    client.navigate({ root: "alice@example.com" }, as("bob@example.com")),
    Code.PERMISSION_DENIED,
    "NOT_SHARED",
  );
  await refused(
    client.navigate({ root: "no address" }, as("bob@example.com")),
    Code.INVALID_ARGUMENT,
    "BAD_ARGUMENT",
  );
  await refused(client.navigate({ path: "/../x" }, as("bob@example.com")), Code.INVALID_ARGUMENT, "BAD_NAME");
});

test(
  "registration answers cluster, rhythm and epoch; a heartbeat keeps the node alive (D19)",
  TIMEOUT,
  async (t) => {
    const { clock, connect } = await startForTest(t);
    const client = connect();
    const lease = await client.registerFileServer(nodeMessage("a"));
    assert.match(lease.clusterId, /^[0-9A-Z]{26}$/);
    assert.deepEqual([lease.heartbeatSeconds, lease.epoch], [5, 1n]);
    clock.advance(NODE_LEASE_MS - 1);
    const beat = await client.heartbeat({ fsId: "a", epoch: 1n, diskFree: 1n });
    assert.deepEqual([beat.known, beat.sendFull, beat.nowMs], [true, false, BigInt(clock.wallMs())]);
    clock.advance(NODE_LEASE_MS - 1);
    assert.equal((await client.navigate({}, as("u@example.com"))).fsId, "a");
    clock.advance(1);
    await refused(client.navigate({}, as("v@example.com")), Code.UNAVAILABLE, "NODE_DRAINING");
    assert.equal((await client.navigate({}, as("u@example.com"))).fsId, "a");
    assert.equal((await client.heartbeat({ fsId: "unknown", epoch: 1n })).known, false);
  },
);

test(
  "who says which epoch it knows is told the one in the way, and replaces it by naming it (M-02)",
  TIMEOUT,
  async (t) => {
    const client = (await startForTest(t)).connect();
    await client.registerFileServer(nodeMessage("a"));
    const restart = nodeMessage("a", { instanceId: "restart", knownEpoch: 0n });
    const told = await client.registerFileServer(restart);
    assert.deepEqual([told.epoch, told.heldEpoch], [0n, 1n]);
    assert.equal((await client.heartbeat({ fsId: "a", epoch: 1n })).known, true);
    const lease = await client.registerFileServer({ ...restart, knownEpoch: told.heldEpoch });
    assert.deepEqual([lease.epoch, lease.heldEpoch], [2n, 0n]);
    // Without the field the answer is the old one.
    assert.equal((await client.registerFileServer(nodeMessage("a"))).epoch, 3n);
  },
);

test(
  "a clone of a live node, an older epoch and another cluster get their own statuses (D1, D19)",
  TIMEOUT,
  async (t) => {
    const client = (await startForTest(t)).connect();
    await client.registerFileServer(nodeMessage("a"));
    await refused(
      client.registerFileServer(nodeMessage("a", { dataId: "clone" })),
      Code.ALREADY_EXISTS,
      "NODE_ID_HELD",
    );
    assert.equal((await client.registerFileServer(nodeMessage("a", { instanceId: "restart" }))).epoch, 2n);
    await refused(client.heartbeat({ fsId: "a", epoch: 1n }), Code.FAILED_PRECONDITION, "FENCED");
    await refused(
      client.claimRoot({ fsId: "a", epoch: 1n, username: "u@example.com" }),
      Code.FAILED_PRECONDITION,
      "FENCED",
    );
    await refused(
      client.registerFileServer(nodeMessage("b", { clusterId: "other" })),
      Code.FAILED_PRECONDITION,
      "CLUSTER_MISMATCH",
    );
  },
);

test(
  "a claim names the node that holds the root, which only the MetaServer assigns (D19)",
  TIMEOUT,
  async (t) => {
    const client = (await startForTest(t)).connect();
    await client.registerFileServer(nodeMessage("a"));
    await client.registerFileServer(nodeMessage("b", { diskFree: 1n << 30n }));
    const claims = await Promise.all(
      ["a", "b"].map((fsId) => client.claimRoot({ fsId, epoch: 1n, username: "U@example.com" })),
    );
    assert.deepEqual(
      claims.map(({ fsId, address }) => [fsId, address]),
      [
        ["a", "a.example.com:50051"],
        ["a", "a.example.com:50051"],
      ],
    );
    assert.equal(claims[0]?.rootId, claims[1]?.rootId);
    assert.equal((await client.navigate({}, as("u@example.com"))).rootId, claims[0]?.rootId);
  },
);

test("a registration that makes no sense is refused whole, field by field", TIMEOUT, async (t) => {
  const { connect, directory } = await startForTest(t);
  const client = connect();
  const root = { owner: "u@example.com", rootId: "R", version: 1n };
  for (const facts of [
    { fsId: "" },
    { fsId: "A" },
    { fsId: "a.b" },
    { fsId: "cluster" },
    { grpcAddr: "" },
    { grpcAddr: "host:41000" },
    { grpcAddr: "http://host:50051" },
    { name: "a\u001b[31m" },
    { name: "x".repeat(129) },
    { instanceId: "" },
    { dataId: "" },
    { dataId: "a b" },
    { clusterId: "ä" },
    { roots: [{ ...root, owner: "nobody" }] },
    { roots: [{ ...root, rootId: "" }] },
    { roots: [{ ...root, version: 1n << 63n }] },
    { roots: [{ ...root, grants: [{ path: "docs", user: "v@example.com" }] }] },
  ]) {
    await refused(client.registerFileServer(nodeMessage("a", facts)), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  }
  assert.deepEqual(await directory.nodes(), []);
  await client.registerFileServer(
    nodeMessage("a", { diskFree: (1n << 64n) - 1n, diskTotal: (1n << 64n) - 1n }),
  );
  await refused(client.heartbeat({ fsId: "a", epoch: 1n << 60n }), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
});

test(
  "RootShare and RootUnshare in any order end as their versions say, for roots of the caller (M-03)",
  TIMEOUT,
  async (t) => {
    const { connect, clock } = await startForTest(t);
    const client = connect();
    await client.registerFileServer(nodeMessage("a"));
    await client.registerFileServer(nodeMessage("b"));
    await client.claimRoot({ fsId: "a", epoch: 1n, username: "u@example.com" });
    const share = { owner: "u@example.com", path: "/docs/", user: "V@example.com", fsId: "a", epoch: 1n };
    const seen = async (): Promise<string[]> => {
      const { roots } = await client.getRoots({}, as("v@example.com"));
      return roots.slice(1).map(({ owner, path }) => `${owner}:${path}`);
    };
    await client.rootShare({ ...share, version: 2n });
    assert.deepEqual(await seen(), ["u@example.com:/docs"]);
    await client.rootUnshare({ ...share, version: 4n });
    await client.rootShare({ ...share, version: 3n });
    await client.rootShare({ ...share, version: 2n });
    assert.deepEqual(await seen(), []);
    await client.rootShare({ ...share, version: 5n });
    assert.deepEqual(await seen(), ["u@example.com:/docs"]);
    await refused(
      client.rootUnshare({ ...share, fsId: "b", version: 9n }),
      Code.FAILED_PRECONDITION,
      "WRONG_NODE",
    );
    await refused(
      client.rootShare({ ...share, path: "docs", version: 9n }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    );
    await refused(
      client.rootShare({ ...share, user: "v", version: 9n }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    );
    await refused(client.rootShare({ ...share, fsId: "c", version: 9n }), Code.UNAVAILABLE, "STARTING");
    await client.registerFileServer(nodeMessage("a"));
    await refused(client.rootUnshare({ ...share, version: 9n }), Code.FAILED_PRECONDITION, "FENCED");
    clock.advance(NODE_LEASE_MS);
    await refused(client.rootUnshare({ ...share, epoch: 2n, version: 9n }), Code.UNAVAILABLE, "STARTING");
    assert.deepEqual(await seen(), ["u@example.com:/docs"]);
  },
);

test(
  "Navigate leads to whom something on the way is shared, and to nobody else (D1, D19)",
  TIMEOUT,
  async (t) => {
    const client = (await startForTest(t)).connect();
    const grants = [{ path: "/docs", user: "v@example.com" }];
    await client.registerFileServer(
      nodeMessage("a", { roots: [{ owner: "u@example.com", rootId: "R", version: 1n, grants }] }),
    );
    for (const path of ["", "/", "/docs", "/docs/deep/x"]) {
      const route = await client.navigate({ root: "u@example.com", path }, as("v@example.com"));
      assert.deepEqual([route.fsId, route.rootId], ["a", "R"], path);
    }
    const told = new Set<string>();
    for (const [root, path, user] of [
      ["u@example.com", "/private", "v@example.com"],
      ["u@example.com", "/docs", "w@example.com"],
      ["nobody@example.com", "/docs", "v@example.com"],
    ] as const) {
      const call = client.navigate({ root, path }, as(user));
      const error = await call.catch((thrown: unknown) => thrown);
      assert.ok(error instanceof StatusError);
      told.add(`${error.code} ${error.message} ${error.metadata.get("svc-reason")}`);
    }
    assert.deepEqual([...told], ["7 nothing on this way is shared with you NOT_SHARED"]);
  },
);

test("GetRoots has every shared root once, over as many pages as it takes", TIMEOUT, async (t) => {
  const client = (await startForTest(t)).connect();
  const roots = Array.from({ length: 1_001 }, (_, index) => ({
    owner: `u${index}@example.com`,
    rootId: `R${index}`,
    version: 1n,
    grants: [{ path: "/docs", user: "v@example.com" }],
  }));
  await client.registerFileServer(nodeMessage("a", { roots }));
  const first = await client.getRoots({}, as("v@example.com"));
  assert.deepEqual([first.roots.length, first.roots[0]?.owner], [1_001, "v@example.com"]);
  const rest = await client.getRoots({ pageToken: first.nextPageToken }, as("v@example.com"));
  assert.equal(new Set([...first.roots, ...rest.roots].map(({ owner }) => owner)).size, 1_002);
  assert.equal(rest.nextPageToken, "");
  const place = (owner: string, path: string): string =>
    Buffer.from(JSON.stringify([owner, path])).toString("base64url");
  for (const pageToken of [
    "x",
    place("u1@example.com\0", "/docs"),
    place("u1@example.com", "/docs\0"),
    place("u1@example.com", "/\ud800"),
    place("U1@example.com", "/docs"),
    place("u1@example.com", "docs"),
    place("u1@example.com", "/docs/"),
  ]) {
    await refused(client.getRoots({ pageToken }, as("v@example.com")), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  }
});

test(
  "a refusal carries ErrorInfo for machines (D1) and one log line without the token",
  TIMEOUT,
  async (t) => {
    const { connect, logged } = await startForTest(t);
    const error = await connect()
      .navigate({}, as("u@example.com"))
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof StatusError);
    const [info] = error.details;
    assert.equal(info?.typeUrl, "type.googleapis.com/google.rpc.ErrorInfo");
    const { reason, domain } = fromBinary(ErrorInfoSchema, info?.value ?? new Uint8Array());
    assert.deepEqual([reason, domain], ["NODE_DRAINING", "grove"]);
    assert.deepEqual(
      logged.map(({ event, fields }) => [event, fields["reason"]]),
      [
        ["store_available", undefined],
        ["call_refused", "NODE_DRAINING"],
      ],
    );
    assert.doesNotMatch(JSON.stringify(logged), /mock-jwt/);
  },
);

test("health answers for the service, and says so when the store is lost", TIMEOUT, async (t) => {
  const { channel, directory } = await startForTest(t);
  const health = createClient(Health, channel());
  for (const service of ["", MetaServer.typeName]) assert.equal((await health.check({ service })).status, 1);
  await directory.close();
  await refused(
    createClient(MetaServer, channel()).registerFileServer(nodeMessage("a")),
    Code.UNAVAILABLE,
    "STORE_UNAVAILABLE",
  );
});

test("a visitor whose own root has no place yet still sees what others share", TIMEOUT, async (t) => {
  const { clock, connect, directory } = await startForTest(t);
  const client = connect();
  const grants = [{ path: "/docs", user: "bob@example.com" }];
  await client.registerFileServer(
    nodeMessage("a", { roots: [{ owner: "alice@example.com", rootId: "R", version: 1n, grants }] }),
  );
  clock.advance(NODE_LEASE_MS);
  const { roots } = await client.getRoots({}, as("bob@example.com"));
  assert.deepEqual(
    roots.map(({ owner, path, rootId }) => [owner, path, rootId]),
    [["alice@example.com", "/docs", "R"]],
  );
  const route = await client.navigate({ root: "alice@example.com", path: "/docs" }, as("bob@example.com"));
  assert.deepEqual([route.fsId, route.rootId, route.path], ["a", "R", "/docs"]);
  assert.equal(await directory.findRoot("bob@example.com"), undefined);
});

test(
  "a page of GetRoots stays far below the message limit of other clients, however long the paths are",
  TIMEOUT,
  async (t) => {
    const client = (await startForTest(t)).connect();
    const path = (at: number): string => `/${`${"p".repeat(250)}/`.repeat(15)}${String(at).padStart(4, "0")}`;
    const grants = Array.from({ length: 700 }, (_, at) => ({ path: path(at), user: "v@example.com" }));
    await client.registerFileServer(
      nodeMessage("a", { roots: [{ owner: "u@example.com", rootId: "R-U", version: 1n, grants }] }),
    );
    const found: string[] = [];
    let pageToken = "";
    let pages = 0;
    do {
      const page = await client.getRoots({ pageToken }, as("v@example.com"));
      assert.ok(toBinary(GetRootsResponseSchema, page).length < 1_200_000);
      found.push(...page.roots.flatMap((root) => (root.owner === "u@example.com" ? [root.path] : [])));
      pageToken = page.nextPageToken;
      pages++;
    } while (pageToken !== "");
    assert.equal(pages, 3);
    assert.deepEqual(
      found,
      grants.map((grant) => grant.path),
    );
  },
);
