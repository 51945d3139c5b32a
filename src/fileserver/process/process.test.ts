// The processes from outside: refused starts, stops, and the findings of a folder's check.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { startTestNode } from "./node.fixture.ts";

const children = new Set<ChildProcess>();
let folder = "";
before(async () => {
  folder = scratchFolder("grove-process-");
});
after(async () => {
  for (const child of children) child.kill("SIGKILL");
});

interface Run {
  readonly child: ChildProcess;
  /** Resolves with the first line on standard output, or with nothing when the process ends without one. */
  readonly firstLine: Promise<string>;
  readonly ended: Promise<{ code: number | null; output: string; errors: string }>;
}

/** Without it, every process would compile its modules anew, as in a new home folder. */
const { NODE_COMPILE_CACHE = "" } = process.env;

const grove = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Run => {
  const child = spawn(process.execPath, [GROVE_ENTRY, ...words], {
    env: { PATH: "", HOME: folder, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }), ...env },
  });
  children.add(child);
  let output = "";
  let errors = "";
  const line = Promise.withResolvers<string>();
  child.stdout.on("data", (bytes: Buffer) => {
    output += bytes.toString();
    if (output.includes("\n")) line.resolve(output.slice(0, output.indexOf("\n")));
  });
  child.stderr.on("data", (bytes: Buffer) => {
    errors += bytes.toString();
  });
  const ended = once(child, "close").then(([code]: unknown[]) => {
    children.delete(child);
    line.resolve("");
    return { code: code as number | null, output, errors };
  });
  return { child, firstLine: line.promise, ended };
};

const MOCK = { SVC_AUTH_MOCK: "1" };
const freeAddress = async () => `127.0.0.1:${(await freeGrpcPorts(1))[0]}`;

for (const [what, words, env, text] of [
  [
    "mock sign-in where others can reach it (C-06)",
    ["-listen", "0.0.0.0:50051"],
    MOCK,
    /mock sign-in is on.*-insecure/,
  ],
  ["mock sign-in on all addresses (C-06)", ["-listen", ":50051"], MOCK, /mock sign-in is on/],
  ["no TLS where others can reach it", ["-listen", ":50051"], { IDP_CLIENT_ID: "x" }, /-tls_cert/],
  ["a port that leaves none for metrics (T6)", ["-listen", "127.0.0.1:8080"], MOCK, /must be above 41000/],
  ["-mock where others can reach it (C-06)", ["-mock", "-listen", "[::]:50051"], {}, /mock sign-in is on/],
  ["half of the TLS files", ["-tls_cert", "x.pem"], MOCK, /all three/],
  [
    "a TLS file that is not there",
    ["-tls_cert", "x", "-tls_key", "x", "-tls_ca", "x"],
    MOCK,
    /cannot read x/,
  ],
  ["an id that is no label", ["-id", "N_1"], MOCK, /node id has/],
  ["the id that stands for all nodes (spec 4.1)", ["-id", "cluster"], MOCK, /"cluster".*another with -id/],
  ["neither identity provider nor mock sign-in (D24)", [], { USE_IDP_AUTH: "0" }, /USE_IDP_AUTH=0/],
  ["a password hash of neither form", [], { ...MOCK, ADMIN_PASSWORD_HASH: "abc" }, /ADMIN_PASSWORD_HASH/],
] as const) {
  test(`a node does not start with ${what}, and says why`, async () => {
    const listen = words.some((word) => word === "-listen") ? [] : ["-listen", await freeAddress()];
    const run = grove(["fileserver", "-data", join(folder, "refused"), ...listen, ...words], env);
    const { code, output, errors } = await run.ended;
    assert.notEqual(code, 0);
    assert.equal(output, "");
    assert.match(errors, text);
  });
}

test("a node says where it serves, refuses a second process on its folder, and ends with 0 on SIGTERM (A-19, G-01)", async () => {
  const data = join(folder, "node");
  const address = await freeAddress();
  const run = grove(["fileserver", "-data", data, "-id", "n1", "-listen", address], MOCK);
  const line = await run.firstLine;
  assert.match(
    line,
    new RegExp(
      `^grove fileserver n1: serves .* on ${address}, metrics on http://127\\.0\\.0\\.1:\\d+/metrics, MOCK sign-in$`,
    ),
  );
  const channel = new GrpcChannel({ addresses: [address] });
  await createClient(FileServer, channel).registerClient(
    {},
    { metadata: { authorization: "Bearer mock-jwt.a@b.cc" } },
  );

  const second = await grove(["fileserver", "-data", data, "-listen", await freeAddress()], MOCK).ended;
  assert.notEqual(second.code, 0);
  const check = await grove(["fsck", "-data", data]).ended;
  assert.notEqual(check.code, 0);

  run.child.kill("SIGTERM");
  const { code, errors } = await run.ended;
  channel.close();
  assert.equal(code, 0);
  for (const text of errors.trim().split("\n")) assert.doesNotThrow(() => JSON.parse(text) as unknown, text);
  assert.ok(!errors.includes("mock-jwt.a@b.cc") && !errors.includes("sst_"));
});

test("fsck ends with 0 on a sound folder and with 1 while anything differs; -repair puts it right (A-17)", async () => {
  const data = join(folder, "check");
  const node = await startTestNode({ dataFolder: data });
  const user = await node.signIn("a@example.com");
  await user.call.createDirectory({ path: "/d" });
  await user.call.createFile({ path: "/d/f", data: Buffer.alloc(1_000) });
  const password = "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918";
  await node.anonymous.setQuota(
    { username: user.email, quotaBytes: 5_000n },
    { metadata: { "x-admin-password-hash": password } },
  );
  await node.stop();

  const fsck = (...words: string[]) => grove(["fsck", "-data", data, ...words]).ended;
  const sound = await fsck("-deep");
  assert.equal(sound.code, 0, sound.output + sound.errors);
  assert.match(sound.output, /0 differences/);
  const json = JSON.parse((await fsck("--json")).output) as Record<string, unknown>;
  assert.deepEqual([json["differenceCount"], json["rootCount"], json["liveBytes"]], [0, 1, 1_000]);

  const db = new DatabaseSync(join(data, "inodes.db"));
  db.exec("UPDATE root SET live_bytes = live_bytes + 7");
  db.close();
  const drifted = await fsck();
  assert.equal(drifted.code, 1);
  assert.match(drifted.output, /differs: /);

  assert.equal((await fsck("-repair")).code, 1);
  assert.equal((await fsck()).code, 0);
  const file = join(data, "quota_config.json");
  const kept = await readFile(file, "utf8");
  await writeFile(file, kept.slice(0, 20));
  const damaged = await fsck();
  assert.equal(damaged.code, 1);
  assert.match(damaged.output, /quota_config\.json is damaged/);
});
