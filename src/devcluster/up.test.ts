// Tests of `grove up` with real processes in a folder of its own: start, death, restart, stop.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { freeGrpcPorts, freePort } from "#testing/free-ports.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import type { ClusterDocument } from "./cluster-file.ts";
import { readOrMakeState, writeState } from "./demo-state.ts";
import { isServing } from "./probe.ts";

const TIMEOUT = { timeout: 90_000 };

interface Up {
  readonly child: ChildProcess;
  /** The output so far. */
  readonly shown: () => string;
}

function startUp(t: TestContext, folder: string, ...flags: string[]): Up {
  const words = [GROVE_ENTRY, "up", "-data", folder, "-reserve", "64MiB", ...flags];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"], env: process.env });
  t.after(() => child.kill("SIGKILL"));
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += String(chunk);
    });
  }
  return { child, shown: () => text };
}

/** Gives a folder ports that no other test takes while nothing of its cluster runs. */
async function keepPortsFor(folder: string): Promise<void> {
  const [metaserver = 0, node = 0] = await freeGrpcPorts(2);
  const [idp, console, door] = [await freePort(), await freePort(), await freePort()];
  await writeState(folder, {
    ...(await readOrMakeState(folder)),
    ports: { idp, metaserver, console, door, nodes: [node] },
  });
}

async function readCluster(folder: string): Promise<ClusterDocument | undefined> {
  const text = await readFile(join(folder, "cluster.json"), "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as ClusterDocument);
}

/** The cluster file of this run, once it exists and is announced. */
async function clusterOf(up: Up, folder: string): Promise<ClusterDocument> {
  const document = await until(async () => {
    if (up.child.exitCode !== null) throw new Error(up.shown());
    const document = await readCluster(folder);
    return document?.pids["up"] === up.child.pid ? document : undefined;
  }, `cluster.json (${up.shown()})`);
  await until(async () => (up.shown().includes("Ctrl-C stops everything") ? true : undefined), "the summary");
  return document;
}

function isAlive(pid: number | null | undefined): boolean {
  if (pid === null || pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const pidsOf = (document: ClusterDocument): number[] =>
  Object.values(document.pids).filter((pid) => pid !== null);

async function allGone(pids: readonly number[]): Promise<void> {
  await until(async () => !pids.some(isAlive), `the end of ${pids.join()}`);
}

function navigate(
  t: TestContext,
  document: ClusterDocument,
  email: string,
): Promise<{ rootId: string; address: string }> {
  const channel = new GrpcChannel({ addresses: [document.metaserver] });
  t.after(() => channel.close());
  const metadata = { authorization: `Bearer mock-jwt.${email}` };
  return createClient(MetaServer, channel).navigate({}, { metadata, waitForReady: true });
}

test(
  "grove up: everything answers over TLS, a killed process comes back, Ctrl-C ends all of it",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("grove up ");
    const up = startUp(t, folder, "-nodes", "2");
    const document = await clusterOf(up, folder);

    assert.deepEqual(Object.keys(document).toSorted(), [
      "admin_password",
      "ca",
      "console",
      "door",
      "idp",
      "metaserver",
      "metrics_token",
      "mock",
      "nodes",
      "pids",
      "users",
    ]);
    assert.equal((await stat(join(folder, "cluster.json"))).mode & 0o777, 0o600);
    assert.deepEqual(Object.keys(document.pids), [
      "up",
      "idp",
      "metaserver",
      "console",
      "door",
      "node-1",
      "node-2",
    ]);
    assert.equal(document.mock, false);
    assert.equal(document.users.length, 4);
    for (const { email, password } of document.users) assert.ok(up.shown().includes(password), email);
    const ca = await readFile(document.ca ?? "", "utf8");
    assert.equal(await isServing(document.metaserver, MetaServer.typeName, ca), true);
    for (const { grpc, metrics, data } of document.nodes) {
      assert.equal(await isServing(grpc, FileServer.typeName, ca), true);
      assert.equal((await fetch(`${metrics}/health`)).status, 200);
      assert.ok((await readdir(data)).length > 0);
      await assert.rejects(isServing(grpc, FileServer.typeName, undefined), "plain speech to a TLS port");
    }
    // The console uses the store of this MetaServer, and its password is the printed one.
    assert.equal((await fetch(`${document.console}/health`)).status, 200);
    const login = await fetch(`${document.console}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ password: document.admin_password }),
    });
    assert.equal(login.status, 200);
    assert.match(
      login.headers.get("set-cookie") ?? "",
      /^svc_admin_token=[0-9a-f]{64}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    const discovery = (await (
      await fetch(`${document.idp?.issuer}/.well-known/openid-configuration`)
    ).json()) as Record<string, unknown>;
    assert.equal(discovery["issuer"], document.idp?.issuer);
    assert.equal(discovery["authorization_endpoint"], document.idp?.auth_url);
    assert.equal(discovery["token_endpoint"], document.idp?.token_url);
    assert.equal((await fetch(`${document.idp?.tokeninfo_url}?id_token=x`)).status, 400);

    // Passwords, tokens and hashes are in the environment and in 0600 files, on no command line.
    for (const pid of pidsOf(document)) {
      const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      const secrets = [
        document.admin_password,
        document.metrics_token,
        ...document.users.map(({ password }) => password),
      ];
      for (const secret of secrets) assert.equal(line.includes(secret), false);
    }

    const second = startUp(t, folder);
    const [code] = (await once(second.child, "close")) as [number];
    assert.notEqual(code, 0);
    assert.match(second.shown(), /another 'grove up' runs on/);

    process.kill(document.pids["node-1"] ?? 0, "SIGKILL");
    const again = await until(async () => {
      const now = await readCluster(folder);
      return now !== undefined && now.pids["node-1"] !== document.pids["node-1"] ? now : undefined;
    }, "a new node-1");
    assert.deepEqual({ ...again, pids: {} }, { ...document, pids: {} });
    assert.deepEqual({ ...again.pids, "node-1": 0 }, { ...document.pids, "node-1": 0 });
    assert.equal(await isServing(document.nodes[0]?.grpc ?? "", FileServer.typeName, ca), true);

    up.child.kill("SIGINT");
    const [exitCode] = (await once(up.child, "close")) as [number];
    assert.equal(exitCode, 0);
    assert.match(
      up.shown(),
      /stopping door\n.*stopping console\n.*stopping node-2\n.*stopping node-1\n.*stopping metaserver\n.*stopping idp\nstopped/,
    );
    assert.equal([...pidsOf(document), ...pidsOf(again)].some(isAlive), false);
    assert.equal(await readCluster(folder), undefined);
  },
);

test(
  "grove up -mock: after kill -9 of everything, and of the supervisor alone, the same cluster starts again",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("grove up ");
    await keepPortsFor(folder);
    const flags = ["-mock", "-nodes", "1"];
    const first = startUp(t, folder, ...flags);
    const document = await clusterOf(first, folder);
    assert.deepEqual(
      [document.mock, document.ca, document.idp, document.pids["idp"]],
      [true, null, null, null],
    );
    assert.match(first.shown(), /Mock mode/);
    const root = await navigate(t, document, "alice@example.com");
    for (const pid of pidsOf(document)) process.kill(pid, "SIGKILL");
    await allGone(pidsOf(document));

    const second = startUp(t, folder, ...flags);
    const restarted = await clusterOf(second, folder);
    assert.deepEqual({ ...restarted, pids: {} }, { ...document, pids: {} });
    const found = await navigate(t, restarted, "alice@example.com");
    assert.deepEqual([found.rootId, found.address], [root.rootId, root.address]);

    // Its processes notice the end of `grove up`.
    process.kill(restarted.pids["up"] ?? 0, "SIGKILL");
    const third = startUp(t, folder, ...flags);
    const last = await clusterOf(third, folder);
    assert.equal(pidsOf(restarted).some(isAlive), false);
    assert.deepEqual({ ...last, pids: {} }, { ...document, pids: {} });
    third.child.kill("SIGTERM");
    assert.equal(((await once(third.child, "close")) as [number])[0], 0);
    await allGone(pidsOf(last));
  },
);

test(
  "grove up that cannot start says what and where, stops what it had started, and leaves no cluster file",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("grove up ");
    await writeFile(join(folder, "node-1"), "a file where the data folder should be");
    const up = startUp(t, folder, "-mock", "-nodes", "1");
    const [code] = (await once(up.child, "close")) as [number];
    assert.equal(code, 1);
    assert.match(up.shown(), /node-1 does not start \(exit code \d+\).*\n/);
    assert.match(up.shown(), /stopping metaserver/);
    assert.equal(await readCluster(folder), undefined);
  },
);

test("two 'grove up' at the same moment go past each other's ports, so both serve", TIMEOUT, async (t) => {
  const folders = [scratchFolder("grove up "), scratchFolder("grove up ")];
  const ups = folders.map((folder) => startUp(t, folder, "-mock", "-nodes", "1"));
  const documents = await Promise.all(ups.map((up, index) => clusterOf(up, folders[index] as string)));
  const [first, second] = documents.map(({ metaserver, console, door, nodes }) => [
    metaserver,
    console,
    door,
    ...nodes.flatMap(({ grpc, metrics }) => [grpc, metrics]),
  ]);
  for (const address of first ?? []) assert.ok(second?.includes(address) === false, `both have ${address}`);
  for (const { shown } of ups) assert.doesNotMatch(shown(), /EADDRINUSE|has ended/);
});
