// Tests of routing through a real MetaServer: finding, caching and following one's root (decision T20).
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import {
  type ServerProcess,
  START_TIMEOUT_MS,
  startFileServer,
  startServer,
} from "./server-processes.fixture.ts";

let client: TestClient;
let metaserver: ServerProcess;
let nodes: ServerProcess[] = [];
let ports: number[] = [];

before(async () => {
  client = await makeTestClient();
  const [metaPort = 0, ...nodePorts] = await freeGrpcPorts(4);
  ports = nodePorts;
  const listen = ["--listen", `127.0.0.1:${metaPort}`];
  metaserver = await startServer(["metaserver", "--data", join(client.folder, "meta"), ...listen], metaPort);
  nodes = [await startNode("n1", ports[0] ?? 0)];
  // The node registers after its port answers.
  let login: VerbResult;
  const deadline = performance.now() + START_TIMEOUT_MS;
  do {
    login = await client.run(import("./login-command.ts"), [
      "--metaserver",
      metaserver.address,
      "--mock",
      "alice@example.com",
    ]);
  } while (login.code === 7 && performance.now() < deadline);
  assert.equal(login.code, 0, login.err);
});

after(async () => {
  for (const node of nodes) await node.kill("SIGKILL");
  await metaserver.kill("SIGKILL");
  await client.stop();
});

function startNode(id: string, port: number): Promise<ServerProcess> {
  const words = ["--id", id, "--metaserver", metaserver.address];
  return startFileServer(join(client.folder, id), port, words);
}

const ls = (...words: string[]): Promise<VerbResult> => client.run(import("./ls-command.ts"), words);
const routes = (): Record<string, { address: string; expires_at_ms: number }> =>
  (JSON.parse(readFileSync(join(client.config, "routes.json"), "utf8")) as { routes: never }).routes;

test("the MetaServer is asked once, and the route kept for twelve hours in a file of one's own (T20)", async () => {
  assert.equal((await ls()).code, 0);
  const route = routes()[""];
  assert.equal(route?.address, nodes[0]?.address);
  const hours = ((route?.expires_at_ms ?? 0) - Date.now()) / 3_600_000;
  assert.ok(hours > 11.9 && hours <= 12);
  assert.equal(statSync(join(client.config, "routes.json")).mode & 0o777, 0o600);
});

test("roots lists one's own root with the server that holds it", async () => {
  const result = await client.run(import("./roots-command.ts"), ["--json"]);
  const roots = JSON.parse(result.out) as Record<string, string>[];
  assert.deepEqual(
    roots.map(({ owner, path, fs_id, address }) => ({ owner, path, fs_id, address })),
    [{ owner: "alice@example.com", path: "/", fs_id: "n1", address: nodes[0]?.address }],
  );
});

test("an administrator, whom the MetaServer shows no way, still sees a user's quota; others do not (D13)", async () => {
  const other = await makeTestClient();
  try {
    const quotaAs = async (email: string): Promise<VerbResult> => {
      const words = ["--metaserver", metaserver.address, "--mock", email];
      const login = await other.run(import("./login-command.ts"), words);
      assert.equal(login.code, 0, login.err);
      return other.run(import("./quota-command.ts"), ["alice@example.com", "--json"]);
    };
    const seen = await quotaAs("admin@example.com");
    assert.equal(seen.code, 0, seen.err);
    assert.equal((JSON.parse(seen.out) as Record<string, unknown>)["root"], "alice@example.com");
    assert.equal((await quotaAs("bob@example.com")).code, 4);
  } finally {
    await other.stop();
  }
});

test("with the MetaServer away the kept route is enough (T20)", async () => {
  const profile = join(client.config, "profile.json");
  const before = readFileSync(profile, "utf8");
  writeFileSync(profile, before.replace(metaserver.address, "127.0.0.1:1"), { mode: 0o600 });
  assert.equal((await ls()).code, 0);
  assert.equal((await client.run(import("./roots-command.ts"), [])).code, 7);
  writeFileSync(profile, before, { mode: 0o600 });
});

test("a server that answers WRONG_NODE is followed to the one that it names (T20)", async () => {
  const second = await startNode("n2", ports[1] ?? 0);
  nodes.push(second);
  const path = join(client.config, "routes.json");
  writeFileSync(path, readFileSync(path, "utf8").replace(nodes[0]?.address ?? "", second.address), {
    mode: 0o600,
  });
  const result = await ls();
  assert.equal(result.code, 0, result.err);
  assert.equal(routes()[""]?.address, nodes[0]?.address);
});

test("an old way to another user's root, which shows nothing there, is asked for anew (D1, T20)", async () => {
  const bob = await makeTestClient();
  try {
    const words = ["--metaserver", metaserver.address, "--mock", "bob@example.com"];
    assert.equal((await bob.run(import("./login-command.ts"), words)).code, 0);
    assert.equal((await bob.run(import("./mkdir-command.ts"), ["-p", "/docs/inner"])).code, 0);
    const shared = await bob.run(import("./share-command.ts"), ["/docs", "alice@example.com"]);
    assert.equal(shared.code, 0, shared.err);
    assert.equal((await ls("bob@example.com:/docs")).out, "inner/\n");
    const home = routes()["bob@example.com"]?.address ?? "";
    const elsewhere = nodes.find(({ address }) => address !== home)?.address ?? "";
    const path = join(client.config, "routes.json");
    const kept = JSON.parse(readFileSync(path, "utf8")) as { routes: Record<string, { address: string }> };
    kept.routes["bob@example.com"] = { ...kept.routes["bob@example.com"], address: elsewhere };
    writeFileSync(path, JSON.stringify(kept), { mode: 0o600 });
    const again = await ls("bob@example.com:/docs");
    assert.deepEqual([again.code, again.out], [0, "inner/\n"], again.err);
    assert.equal(routes()["bob@example.com"]?.address, home);
    const refused = await ls("bob@example.com:/private");
    assert.equal(refused.code, 4);
    assert.match(refused.err, /nothing here that you may see.*'grove roots'/s);
    // One's own root has one route under all its names.
    assert.equal((await ls("alice@example.com:/")).code, 0);
    assert.deepEqual(Object.keys(routes()).toSorted(), ["", "bob@example.com"]);
  } finally {
    await bob.stop();
  }
});

test("a server that came back under another address is found by asking again", async () => {
  await nodes[0]?.kill("SIGKILL");
  nodes[0] = await startNode("n1", ports[2] ?? 0);
  let result: VerbResult;
  const deadline = performance.now() + 20_000;
  // The MetaServer knows the old address until the node has registered its new one.
  do result = await ls();
  while (result.code === 7 && performance.now() < deadline);
  assert.equal(result.code, 0, result.err);
  assert.equal(routes()[""]?.address, nodes[0].address);
});
