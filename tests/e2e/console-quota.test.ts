// Tests of quota changes at the console in a TLS cluster: exact to 2^64 - 1 in every answer (4.3, T17).
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocket } from "ws";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { userList } from "#wire/webapi/user.ts";
import { type CertificateCluster, startCertificateCluster } from "./certificate-cluster.ts";
import { freePlace, type Program, startGrove, stopProgram } from "./processes.ts";

const BOB = "bob@example.com";
const QUOTA_PATH = `/api/users/${encodeURIComponent(BOB)}/quota`;

interface Message {
  readonly type: string;
  readonly data: {
    readonly nodes?: readonly { readonly per_user_quota?: Readonly<Record<string, unknown>> }[];
  };
}

interface Owner {
  after(hook: () => Promise<unknown> | void): void;
}

async function startConsole(
  t: Owner,
  cluster: CertificateCluster,
): Promise<{ program: Program; url: string; data: string }> {
  const { address } = await freePlace();
  const data = join(cluster.folder, "admin");
  const store = `sqlite:${join(cluster.folder, "meta", "metadata.db")}`;
  const words = ["admin", "-data", data, "-listen", address, "-meta", store, "-allow_nodes", "127.0.0.0/8"];
  const program = startGrove([...words, "-tls_ca", join(cluster.caDir, "ca.crt")]);
  t.after(() => stopProgram(program, "SIGKILL"));
  await program.says(/the console is on/);
  return { program, url: `http://${address}`, data };
}

/** A user who has signed in, and so has a root on the node. */
async function signIn(
  t: Owner,
  address: string,
  ca: string,
): Promise<{ files: Client<typeof FileServer>; metadata: { authorization: string } }> {
  const channel = new GrpcChannel({ addresses: [address], tls: { ca } });
  t.after(() => channel.close());
  const files = createClient(FileServer, channel);
  const { sessionToken } = await files.registerClient(
    { clientId: "test", clientVersion: "0", deviceName: "test" },
    { metadata: { authorization: `Bearer mock-jwt.${BOB}` } },
  );
  return { files, metadata: { authorization: `Bearer ${sessionToken}` } };
}

test("a quota of 2^53 + 1 and of 2^64 - 1 set at the console is what the node, the list and the live stream say", {
  timeout: 120_000,
}, async (t) => {
  const folder = scratchFolder("grove-e2e-");
  const cluster = await startCertificateCluster(t, folder, 30);
  const node = await cluster.addNode("n1");
  const { files, metadata } = await signIn(t, node.address, cluster.caPem);
  const { url, data, program } = await startConsole(t, cluster);
  const login = await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"password":"admin"}',
  });
  assert.equal(login.status, 200);
  const cookie = login.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
  const asOperator = { cookie, origin: url, "content-type": "application/json" };
  const bobInList = async (): Promise<{ quota_limit: number | string; quota_source: string }> => {
    const answer = await fetch(`${url}/api/users?q=bob`, { headers: asOperator });
    const [row] = userList.parse(await answer.json()).users;
    assert.equal(row?.username, BOB);
    return row;
  };
  const messages: Message[] = [];
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws/cluster`, { headers: { cookie } });
  t.after(() => socket.terminate());
  socket.on("message", (text) => messages.push(JSON.parse((text as Buffer).toString("utf8")) as Message));

  // The metadata store names its root before the first poll, so the quota is the default either way.
  assert.equal((await bobInList()).quota_limit, 17_179_869_184);
  for (const [method, exact] of [
    ["PUT", 2n ** 53n + 1n],
    ["POST", 2n ** 64n - 1n],
  ] as const) {
    const changed = await fetch(url + QUOTA_PATH, {
      method,
      headers: asOperator,
      body: `{"quota_bytes":${exact}}`,
    });
    assert.deepEqual(
      [changed.status, ((await changed.json()) as { quota_limit: unknown }).quota_limit],
      [200, String(exact)],
    );
    const onNode = await files.getQuota({}, { metadata });
    assert.deepEqual([onNode.quotaBytes, onNode.source], [exact, "explicit"]);
    const { quota_limit, quota_source } = await bobInList();
    assert.deepEqual([quota_limit, quota_source], [String(exact), "explicit"]);
  }
  const told = (): unknown =>
    messages.findLast(({ type }) => type === "metrics.snapshot")?.data.nodes?.[0]?.per_user_quota?.[BOB];
  while (told() !== String(2n ** 64n - 1n)) await new Promise((resolve) => setTimeout(resolve, 100));

  await t.test(
    "the changes are in the console's audit log and in the node's, without the password's hash",
    async () => {
      const console = await auditOf(data);
      const acts = console.filter(({ act }) => act === "quota.set");
      assert.deepEqual(
        acts.map(({ subject, detail }) => [subject, detail["quota_bytes"], detail["outcome"]]),
        [
          [BOB, "9007199254740993", "done"],
          [BOB, "18446744073709551615", "done"],
        ],
      );
      assert.ok(
        (await auditOf(node.data)).some(({ act, subject }) => act === "quota.set" && subject === BOB),
      );
      // SHA-256 of "admin".
      const secret = /8c6976e5b5410415/;
      assert.doesNotMatch(JSON.stringify(console) + program.output() + node.output(), secret);
    },
  );

  await t.test("signing out closes the socket with 4401", async () => {
    const closed = new Promise<number>((resolve) => socket.once("close", resolve));
    const out = await fetch(`${url}/api/auth/logout`, { method: "POST", headers: { cookie, origin: url } });
    assert.equal(out.status, 200);
    assert.equal(await closed, 4401);
  });

  await t.test("a node that is killed is NODE_OFFLINE, and nothing is queued", async () => {
    await stopProgram(node, "SIGKILL");
    const again = await fetch(`${url}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"password":"admin"}',
    });
    const headers = { ...asOperator, cookie: again.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "" };
    const refused = await fetch(url + QUOTA_PATH, { method: "PUT", headers, body: '{"quota_bytes":1}' });
    assert.deepEqual(
      [refused.status, ((await refused.json()) as { code: string }).code],
      [503, "NODE_OFFLINE"],
    );
  });
});

interface Line {
  readonly act: string;
  readonly subject: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

async function auditOf(data: string): Promise<Line[]> {
  const folder = join(data, "audit");
  const files = (await readdir(folder)).filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), "utf8")));
  return texts.flatMap((text) => text.trim().split("\n")).map((line) => JSON.parse(line) as Line);
}
