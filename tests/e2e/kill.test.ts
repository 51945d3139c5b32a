// Tests that SIGKILL of a FileServer under writes keeps acknowledged data and exact counters.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { BusyFolder, type Contents, Dice } from "./busy-folder.ts";
import { checkData } from "./checked-data.ts";
import { freePlace, grove, startGrove, startNode, stopProgram } from "./processes.ts";

/** More rounds: GROVE_E2E_ROUNDS=100 node --test tests/e2e/kill.test.ts */
const ROUNDS = Number(process.env["GROVE_E2E_ROUNDS"] ?? 2);
const SEED = process.env["GROVE_E2E_SEED"] ?? String(Date.now());
const FOLDERS = 8;

/** A user's session and every operation for reading. */
async function lookAt(channel: GrpcChannel, email: string) {
  const client = createClient(FileServer, channel);
  const registered = await client.registerClient(
    { clientId: "kill-test" },
    { metadata: { authorization: `Bearer mock-jwt.${email}` }, waitForReady: true },
  );
  const token = registered.sessionToken;
  const metadata = { authorization: `Bearer ${token}` };
  const list = async (path: string) => (await client.listDir({ path }, { metadata })).entries;
  const read = async (path: string): Promise<Uint8Array> => {
    const chunks: Uint8Array[] = [];
    for await (const { part } of client.downloadFile({ path }, { metadata })) {
      if (part.case === "chunk") chunks.push(part.value.data);
    }
    return Buffer.concat(chunks);
  };
  /** Sizes of everything below a folder; asserts that each folder's size is the sum of its content. */
  const total = async (path: string): Promise<bigint> => {
    let sum = 0n;
    for (const entry of await list(path)) {
      sum += entry.kind === Kind.DIRECTORY ? await total(entry.path) : entry.size;
    }
    const { size } = await client.getAttr({ path }, { metadata });
    assert.equal(size, sum, path);
    return sum;
  };
  return { token, list, read, total, quota: () => client.getQuota({}, { metadata }) };
}

/** Asserts that the counters equal the recount and that staging is empty. */
async function assertExact(user: Awaited<ReturnType<typeof lookAt>>): Promise<void> {
  const sum = await user.total("/");
  const { usedBytes, liveBytes, stagingBytes } = await user.quota();
  assert.deepEqual([usedBytes, liveBytes, stagingBytes], [sum, sum, 0n]);
}

const chunkFiles = async (data: string): Promise<number> => {
  const entries = await readdir(join(data, "chunks"), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
};

test("after every kill -9 each folder is as last acknowledged, or with the one call under way (D15, A-01)", {
  timeout: 120_000 + ROUNDS * 10_000,
}, async (t: TestContext) => {
  t.diagnostic(`seed ${SEED}, ${ROUNDS} rounds`);
  const data = scratchFolder("grove-e2e-");
  const place = await freePlace();
  const dice = new Dice(SEED);
  const folders = Array.from({ length: FOLDERS }, (_, index) => new BusyFolder(`/w${index}`, SEED));
  for (let round = 0; round <= ROUNDS; round++) {
    const node = await startNode({ data, place });
    t.after(() => stopProgram(node, "SIGKILL"));
    const channels = [1, 2].map(() => new GrpcChannel({ addresses: [place.address] }));
    t.after(() => channels.forEach((channel) => channel.close()));
    const [first, second] = channels as [GrpcChannel, GrpcChannel];
    const user = await lookAt(first, "alice@example.com");
    const present = new Set((await user.list("/")).map(({ path }) => path));
    for (const [index, folder] of folders.entries()) {
      const path = `/w${index}`;
      const found = new Map<string, Uint8Array>();
      const entries = present.has(path) ? await user.list(path) : [];
      for (const entry of entries) found.set(entry.name, await user.read(entry.path));
      const contents: Contents | undefined = present.has(path) ? found : undefined;
      assert.equal(folder.settle(contents), undefined, `round ${round}`);
    }
    await assertExact(user);
    if (round < ROUNDS) {
      const work = folders.map((folder, index) => folder.work(index % 2 === 0 ? first : second, user.token));
      await progress(folders, 30 + dice.below(150));
      node.child.kill("SIGKILL");
      await node.ended;
      await Promise.all(work);
      await checkData(data);
    } else {
      assert.equal((await stopProgram(node)).code, 0);
      const { chunkCount, notes } = await checkData(data);
      assert.deepEqual(notes, []);
      assert.equal(await chunkFiles(data), chunkCount);
    }
    for (const channel of channels) channel.close();
  }
  t.diagnostic(`${acknowledgedBy(folders)} calls acknowledged`);
});

const acknowledgedBy = (folders: readonly BusyFolder[]): number =>
  folders.reduce((sum, folder) => sum + folder.acknowledged, 0);

/** Waits until so many more calls have been acknowledged. */
async function progress(folders: readonly BusyFolder[], calls: number): Promise<void> {
  const wanted = acknowledgedBy(folders) + calls;
  await until(() => acknowledgedBy(folders) >= wanted, "calls that are acknowledged");
}

/** A thousand files of all sizes in nested folders, by relative path. */
async function makeTree(root: string): Promise<Map<string, Uint8Array>> {
  const dice = new Dice(SEED);
  const files = new Map<string, Uint8Array>();
  for (let index = 0; index < 1_000; index++) {
    const folder = `d${index % 7}/e${index % 31}`;
    const size = index % 250 === 0 ? 5_000_000 + index : index % 50 === 0 ? 100_000 + index : index % 3_000;
    files.set(`${folder}/f${index}`, dice.bytes(size));
  }
  for (const folder of new Set([...files.keys()].map((path) => path.slice(0, path.lastIndexOf("/"))))) {
    await mkdir(join(root, folder), { recursive: true });
  }
  for (const [path, content] of files) await writeFile(join(root, path), content);
  return files;
}

test("grove put -r outlives a killed server; when it is killed itself, the next one completes the tree (T21)", {
  timeout: 180_000,
}, async (t: TestContext) => {
  const scratch = scratchFolder("grove-e2e-");
  const [data, tree, copy] = ["data", "tree", "copy"].map((name) => join(scratch, name)) as [
    string,
    string,
    string,
  ];
  const files = await makeTree(tree);
  const place = await freePlace();
  const env = { GROVE_CONFIG_DIR: join(scratch, "config") };
  let node = await startNode({ data, place });
  t.after(() => stopProgram(node, "SIGKILL"));
  const login = await grove(["login", "--mock", "alice@example.com", "--fileserver", place.address], { env });
  assert.equal(login.code, 0, login.stderr);

  // The client dies: no partial file is visible, and the existing ones are right.
  const killed = startGrove(["put", "-r", tree], { env });
  await halfway(place.address, 200);
  killed.child.kill("SIGKILL");
  await killed.ended;

  // The server dies during the transfer and restarts: the client continues by itself.
  const put = startGrove(["put", "-r", tree], { env });
  await halfway(place.address, 500);
  node.child.kill("SIGKILL");
  await node.ended;
  await checkData(data);
  node = await startNode({ data, place });
  const done = await put.ended;
  assert.equal(done.code, 0, done.stderr);

  const got = await grove(["get", "-r", "/tree", copy], { env });
  assert.equal(got.code, 0, got.stderr);
  for (const [path, content] of files) {
    assert.equal(Buffer.compare(await readFile(join(copy, path)), content), 0, path);
  }
  const channel = new GrpcChannel({ addresses: [place.address] });
  t.after(() => channel.close());
  const user = await lookAt(channel, "alice@example.com");
  await assertExact(user);
  const sum = [...files.values()].reduce((bytes, content) => bytes + BigInt(content.length), 0n);
  assert.equal(await user.total("/tree"), sum);
  channel.close();
  assert.equal((await stopProgram(node)).code, 0);
  const { chunkCount, notes, liveBytes } = await checkData(data);
  assert.deepEqual([notes, BigInt(liveBytes)], [[], sum]);
  assert.equal(await chunkFiles(data), chunkCount);
});

/** Waits until so many operations have written since the server started. */
async function halfway(address: string, writes: number): Promise<void> {
  const [host = "", port = ""] = address.split(":");
  const url = `http://${host}:${Number(port) - 41_000}/metrics`;
  await until(async () => {
    const metrics = (await (await fetch(url)).json()) as { write_ops_total: number };
    return metrics.write_ops_total >= writes;
  }, "an upload under way");
}
