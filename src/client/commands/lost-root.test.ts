// Tests that a client looks for a root that its server has lost without knowing to whom, and goes on there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { GrpcServer } from "#wire/grpc/server.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { makeTestClient, type TestClient } from "./client.fixture.ts";
import { type FakeServer, folderAttr, refusal, startFakeServer } from "./fake-server.fixture.ts";

const ends: (() => Promise<void>)[] = [];
let client: TestClient;
let [first, second]: FakeServer[] = [];
let isLost = false;
/** Questions after the loss for which the MetaServer still names the former server. */
let staleAnswers = 0;
let asked = 0;

before(async () => {
  client = await makeTestClient();
  ends.push(() => client.stop());
  const one = await startFakeServer({
    getAttr: () => {
      if (isLost) throw refusal(14, "WRONG_NODE");
      return folderAttr("first");
    },
  });
  const other = await startFakeServer({ getAttr: () => folderAttr("second") });
  ends.push(one.stop, other.stop);
  [first, second] = [one, other];
  const meta = new GrpcServer();
  ends.push(() => meta.close());
  meta.addService(MetaServer, {
    navigate: () => {
      if (isLost) asked++;
      const { address } = isLost && asked > staleAnswers ? other : one;
      return { fsId: "n", address, rootId: "r", path: "/", ttlSeconds: 43_200 };
    },
  });
  const { port } = await meta.listen({ host: "127.0.0.1", port: 0 });
  const words = ["--metaserver", `127.0.0.1:${port}`, "--mock", "alice@example.com"];
  assert.equal((await client.run(import("./login-command.ts"), words)).code, 0);
});
after(async () => {
  for (const end of ends.toReversed()) await end();
});

test("WRONG_NODE without an address: the MetaServer is asked, at once and until it knows (T20)", async () => {
  const stat = () => client.run(import("./stat-command.ts"), ["/", "--json"]);
  assert.equal((await stat()).code, 0);
  isLost = true;
  staleAnswers = 2;
  const found = await stat();
  assert.equal(found.code, 0, found.err);
  assert.equal(asked, 3);
  assert.deepEqual([first?.registrations.length, second?.registrations.length], [1, 1]);
  // The way is kept: nobody is asked again.
  assert.equal((await stat()).code, 0);
  assert.equal(asked, 3);
});

test("a server that the user has named is not left for another one", async () => {
  isLost = true;
  asked = 0;
  staleAnswers = Number.POSITIVE_INFINITY;
  await client.run(import("./logout-command.ts"), []);
  const words = ["--fileserver", first?.address ?? "", "--mock", "alice@example.com"];
  assert.equal((await client.run(import("./login-command.ts"), words)).code, 0);
  const refused = await client.run(import("./stat-command.ts"), ["/"]);
  assert.equal(refused.code, 7, refused.out);
  assert.equal(asked, 0);
});
