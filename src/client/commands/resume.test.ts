// Tests of cut large transfers: they arrive intact, and little is sent twice (D15).
//
// The short form takes 120 MB; GROVE_RESUME_BYTES=2147483648 (npm run rig:resume) takes 2 GiB and allows a
// tenth of that to be sent twice.
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CHUNK_BYTES } from "#base/limits.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import { type CutProxy, startCutProxy } from "./cut-proxy.fixture.ts";
import {
  type ServerProcess,
  START_TIMEOUT_MS,
  spawnGrove,
  startFileServer,
  startServer,
} from "./server-processes.fixture.ts";

const BYTES = Number(process.env["GROVE_RESUME_BYTES"] ?? 120_000_000);
const isLong = BYTES > 1_000_000_000;
const BYTES_PER_SECOND = isLong ? Number.POSITIVE_INFINITY : 60_000_000;
const CUTS = 5;
/** The cost of one cut: the chunk in progress, those in flush, and the sockets' contents. */
const CUT_COSTS_BYTES = 5 * CHUNK_BYTES;

let client: TestClient;
let metaserver: ServerProcess;
let node: ServerProcess;
let ports: number[] = [];
let proxies: CutProxy[] = [];
let nodePort = 0;
let source = "";

before(async () => {
  client = await makeTestClient();
  client.env["GROVE_RETRY_SECONDS"] = "60";
  const [metaPort = 0, ...nodePorts] = await freeGrpcPorts(5);
  ports = nodePorts;
  const listen = ["--listen", `127.0.0.1:${metaPort}`];
  metaserver = await startServer(["metaserver", "--data", join(client.folder, "meta"), ...listen], metaPort);
  nodePort = ports[0] ?? 0;
  proxies = [
    await startCutProxy(ports[2] ?? 0, () => nodePort, BYTES_PER_SECOND),
    await startCutProxy(ports[3] ?? 0, () => nodePort, BYTES_PER_SECOND),
  ];
  node = await startNode(proxies[0]);
  const words = ["--metaserver", metaserver.address, "--mock", "alice@example.com"];
  let login: VerbResult;
  const deadline = performance.now() + START_TIMEOUT_MS;
  do login = await client.run(import("./login-command.ts"), words);
  while (login.code === 7 && performance.now() < deadline);
  assert.equal(login.code, 0, login.err);
  source = join(client.folder, "large");
  makeFile(source, BYTES);
});

after(async () => {
  await node.kill("SIGKILL");
  await metaserver.kill("SIGKILL");
  for (const proxy of proxies) await proxy.close();
  await client.stop();
});

/** A node that advertises a proxy's address. */
function startNode(proxy: CutProxy | undefined): Promise<ServerProcess> {
  const advertise = ["--advertise", `127.0.0.1:${proxy?.port}`];
  const words = ["--id", "n1", "--metaserver", metaserver.address, ...advertise];
  return startFileServer(client.folder, nodePort, words);
}

/** A file of blocks that all differ. */
function makeFile(path: string, bytes: number): void {
  const descriptor = openSync(path, "w");
  const block = Buffer.alloc(1_000_000, "grove");
  for (let at = 0; at < bytes; at += block.length) {
    block.writeDoubleLE(at);
    writeSync(descriptor, block, 0, Math.min(block.length, bytes - at));
  }
  closeSync(descriptor);
}

/** Compares two files block by block. */
function assertSame(path: string, other: string): void {
  const [descriptor, otherDescriptor] = [openSync(path, "r"), openSync(other, "r")];
  const [block, otherBlock] = [Buffer.alloc(1_000_000), Buffer.alloc(1_000_000)];
  for (let at = 0, got = 1; got > 0; at += got) {
    got = readSync(descriptor, block);
    assert.equal(readSync(otherDescriptor, otherBlock), got, `from byte ${at} on`);
    assert.ok(block.subarray(0, got).equals(otherBlock.subarray(0, got)), `from byte ${at} on`);
  }
  for (const each of [descriptor, otherDescriptor]) closeSync(each);
}

/** The program running beside the test. */
class Run {
  readonly #child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  err = "";

  constructor(words: readonly string[]) {
    this.#child = spawnGrove(words, client.env);
    this.ended = once(this.#child, "exit");
    this.#child.stderr?.on("data", (piece: Buffer) => {
      this.err += piece.toString();
    });
  }

  /** Waits for a condition; fails when the program ends before. */
  async until(isTrue: () => boolean): Promise<void> {
    for (let tries = 0; !isTrue(); tries++) {
      assert.ok(tries < 30_000, `what is waited for does not come: ${this.err}`);
      assert.equal(this.#child.exitCode, null, `it ended too early: ${this.err}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal);
    await this.ended;
  }

  async succeeds(): Promise<void> {
    const [code] = await this.ended;
    assert.equal(code, 0, this.err);
  }
}

async function endAllSessions(): Promise<void> {
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${nodePort}`] });
  try {
    const files = createClient(FileServer, channel);
    const { sessionToken } = await files.registerClient(
      { clientId: "other", clientVersion: "0", deviceName: "other" },
      { metadata: { authorization: "Bearer mock-jwt.alice@example.com" } },
    );
    const metadata = { authorization: `Bearer ${sessionToken}` };
    const { ended } = await files.endSession({ everywhere: true }, { metadata });
    assert.ok(ended >= 2);
  } finally {
    channel.close();
  }
}

test("an upload cut five times (client killed, server killed, network, session, address) arrives intact, and hardly more is sent", async () => {
  const [first, second] = proxies as [CutProxy, CutProxy];
  const sent = (): number => first.sentBytes + second.sentBytes;
  let mark = 0;
  const another = (run: Run): Promise<void> => {
    mark = sent();
    return run.until(() => sent() - mark > BYTES / (CUTS + 2));
  };
  const words = ["put", source, "/large"];

  const killed = new Run(words);
  await another(killed);
  await killed.kill("SIGKILL");

  const run = new Run(words);
  await another(run);
  assert.match(run.err, /large: going on at \d/);
  await node.kill("SIGKILL");
  node = await startNode(first);
  await another(run);
  first.cut();
  await new Promise((resolve) => setTimeout(resolve, 500));
  first.mend();
  await another(run);
  await endAllSessions();
  await another(run);
  await node.kill("SIGKILL");
  first.cut();
  nodePort = ports[1] ?? 0;
  node = await startNode(second);
  await run.succeeds();

  assert.ok(run.err.split("going on at").length - 1 >= CUTS, run.err);
  const stat = await client.run(import("./stat-command.ts"), ["--json", "/large"]);
  const attr = JSON.parse(stat.out) as { size: number };
  assert.equal(attr.size, BYTES);
  const resent = sent() - BYTES;
  assert.ok(resent < CUTS * CUT_COSTS_BYTES, `${resent} bytes more than the file has were sent`);
  if (isLong) assert.ok(resent < BYTES / 10, `${resent} bytes more than the file has were sent`);
  console.log(`# ${BYTES} bytes, ${sent()} sent: ${((100 * resent) / BYTES).toFixed(2)} % twice`);
  assert.equal(readdirSync(join(client.config, "uploads")).length, 0);
  const quota = await client.run(import("./quota-command.ts"), ["--json"]);
  assert.equal((JSON.parse(quota.out) as { staging_bytes: number }).staging_bytes, 0);
});

test("a download cut by a killed client and a dead network goes on from its part, and takes its name only when it is whole", async () => {
  const [, proxy] = proxies as [CutProxy, CutProxy];
  const target = join(client.folder, "back");
  const start = proxy.receivedBytes;
  const another = (run: Run): Promise<void> => {
    const mark = proxy.receivedBytes;
    return run.until(() => proxy.receivedBytes - mark > BYTES / 4);
  };
  const killed = new Run(["get", "/large", target]);
  await another(killed);
  await killed.kill("SIGKILL");
  assert.equal(existsSync(target), false);
  const run = new Run(["get", "/large", target]);
  await another(run);
  assert.match(run.err, /large: going on at \d/);
  proxy.cut();
  await new Promise((resolve) => setTimeout(resolve, 300));
  proxy.mend();
  await run.succeeds();
  assert.equal(statSync(target).size, BYTES);
  assertSame(target, source);
  const more = proxy.receivedBytes - start - BYTES;
  assert.ok(more < 2 * CUT_COSTS_BYTES, `${more} bytes more than the file has came`);
  assert.deepEqual(
    readdirSync(client.folder).filter((name) => name.endsWith(".part")),
    [],
  );
});

test("a download whose file has changed meanwhile begins anew and has nothing of the old one", async () => {
  const [, proxy] = proxies as [CutProxy, CutProxy];
  const target = join(client.folder, "changed");
  const killed = new Run(["get", "/large", target]);
  const mark = proxy.receivedBytes;
  await killed.until(() => proxy.receivedBytes - mark > 20_000_000);
  await killed.kill("SIGKILL");
  const other = join(client.folder, "other");
  makeFile(other, 17_000_003);
  await new Run(["put", other, "/large"]).succeeds();
  await new Run(["get", "/large", target]).succeeds();
  assertSame(target, other);
  assert.deepEqual(
    readdirSync(client.folder).filter((name) => name.endsWith(".part")),
    [],
  );
});
