// `grove import` from each kind of source, against the real servers: whole, cut and gone on, repeated, reported.
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { makeTestClient, type TestClient, type VerbResult } from "#client/commands/client.fixture.ts";
import { type ServerProcess, startFileServer } from "#client/commands/server-processes.fixture.ts";
import { freeGrpcPorts, freePort } from "#testing/free-ports.ts";
import { OBJECT_STORES, startStore, withoutStore } from "#testing/object-stores.ts";
import { SshServers, withoutSshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";

let client: TestClient;
let server: ServerProcess;
let tree = "";

const RCLONE = "/usr/bin/rclone";
const withoutRclone =
  existsSync(RCLONE) || (process.env["CI"] ?? "") !== "" ? false : "rclone is not installed";
const FILES = ["a.txt", "empty", "folder/b c%d#?.txt", "folder/deep/näme", "large.bin"];

before(async () => {
  client = await makeTestClient();
  const [port = 0] = await freeGrpcPorts(1);
  server = await startFileServer(client.folder, port);
  await ok(
    import("#client/commands/login-command.ts"),
    "--mock",
    "alice@example.com",
    "--fileserver",
    server.address,
  );
  tree = join(client.folder, "tree");
  await mkdir(join(tree, "folder/deep"), { recursive: true });
  await mkdir(join(tree, "hollow"));
  for (const [index, name] of FILES.entries()) {
    const bytes = Buffer.alloc(name === "large.bin" ? 30_000_001 : name === "empty" ? 0 : 40_000 + index);
    for (let at = 0; at < bytes.length; at += 4)
      bytes.writeUInt32LE(at * (index + 3), Math.min(at, bytes.length - 4));
    await writeFile(join(tree, name), bytes);
    // The first file is of the first second of 1970, which is a time too.
    const seconds = index === 0 ? 0 : 1_600_000_000 + index;
    await utimes(join(tree, name), seconds, seconds);
  }
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

async function ok(verb: Parameters<TestClient["run"]>[0], ...words: string[]): Promise<string> {
  const { code, out, err } = await client.run(verb, words);
  assert.equal(code, 0, `${words.join(" ")}: ${err}`);
  return out;
}

function bringIn(...words: string[]): Promise<VerbResult> {
  return client.run(import("#client/import/import-command.ts"), words);
}

/** Imports; answers files imported, there already, and failed. */
async function counted(...words: string[]): Promise<readonly [number, number, number]> {
  const { code, out, err } = await bringIn("--json", ...words);
  assert.equal(code, 0, err + out);
  const { files, unchanged, failed_count: failed } = JSON.parse(out) as Record<string, number>;
  return [files ?? -1, unchanged ?? -1, failed ?? -1];
}

async function mustBeThere(path: string, options: { readonly hasHollow: boolean }): Promise<void> {
  const back = join(client.folder, "back");
  await rm(back, { recursive: true, force: true });
  await ok(import("#client/commands/get-command.ts"), "-q", "-r", path, back);
  if (!options.hasHollow) await mkdir(join(back, "hollow"));
  execFileSync("/usr/bin/diff", ["-r", tree, back]);
}

async function portAnswers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

test("a folder comes whole, again only what is new, and a report tells of each file", async () => {
  const report = join(client.folder, "report.csv");
  assert.deepEqual(await counted("--dry-run", tree, "/from-folder"), [5, 0, 0]);
  assert.match((await client.run(import("#client/commands/ls-command.ts"), ["/from-folder"])).err, /no such/);
  assert.deepEqual(await counted("--report", report, tree, "/from-folder"), [5, 0, 0]);
  const lines = (await readFile(report, "utf8")).trim().split("\n");
  assert.equal(lines[0], "path,outcome,bytes,why");
  assert.deepEqual(lines.slice(1).sort()[0], "/a.txt,imported,40000,");
  assert.equal(lines.length, 6);
  await mustBeThere("/from-folder", { hasHollow: true });
  assert.deepEqual(await counted(tree, "/from-folder"), [0, 5, 0]);
  assert.deepEqual(await counted("--checksum", tree, "/from-folder"), [0, 5, 0]);
  const refused = await bringIn("--report", report, tree, "/from-folder");
  assert.match(refused.err, /report\.csv/);
  assert.notEqual(refused.code, 0);
});

test("an SFTP server's files come by ssh, and go on where the connection was cut", {
  skip: withoutSshServer(),
}, async (t) => {
  const servers = new SshServers();
  t.after(() => servers.stop());
  // Once a file `cut` is there, the connection ends in the middle of the large file.
  const [program, cut] = [join(client.folder, "sftp"), join(client.folder, "cut")];
  const real = "/usr/lib/openssh/sftp-server";
  const script = `#!/bin/sh\nif [ -e ${cut} ]; then ${real} | { dd bs=65536 count=400 status=none; kill $$; }; else exec ${real}; fi\n`;
  await writeFile(program, script, { mode: 0o755 });
  const ssh = await servers.start({ settings: [`Subsystem sftp ${program}`] });
  const known = join(client.folder, "known_hosts");
  await writeFile(known, `[${ssh.host}]:${ssh.port} ${ssh.hostKey}\n`);
  const keys = ["--identity", servers.keyFile, "--known-hosts", known];
  const source = `sftp://${ssh.user}@${ssh.host}:${ssh.port}${tree}`;
  await writeFile(cut, "");
  const broken = await bringIn(...keys, source, "/from-sftp");
  assert.equal(broken.code, 7, broken.err);
  assert.match(broken.err, /the connection has ended/);
  await rm(cut);
  const [again, already] = await counted(...keys, source, "/from-sftp");
  assert.equal(again + already, 5);
  assert.ok(again >= 1);
  await mustBeThere("/from-sftp", { hasHollow: true });
  await ok(import("#client/commands/rm-command.ts"), "-r", "/from-sftp");
  assert.deepEqual(await counted(...keys, source, "/from-sftp"), [5, 0, 0]);
  await mustBeThere("/from-sftp", { hasHollow: true });
  assert.deepEqual(await counted(...keys, source, "/from-sftp"), [0, 5, 0]);
  const unknown = await bringIn(
    "--identity",
    servers.keyFile,
    "--known-hosts",
    "/dev/null",
    "--json",
    source,
    "/no",
  );
  assert.notEqual(unknown.code, 0);
  const missing = await bringIn(...keys, `${source}/not-there`, "/no");
  assert.match(missing.err, /there is no such file or folder on/);
  assert.equal(missing.code, 3);
});

test("a WebDAV server's files come with the password from a file, and a wrong one is named", {
  skip: withoutRclone,
}, async (t) => {
  const port = await serveWebDav(t);
  const file = join(client.folder, "password");
  await writeFile(file, "open sesame\n", { mode: 0o600 });
  const source = `http://ali@127.0.0.1:${port}/`;
  assert.deepEqual(await counted("--password-file", file, source, "/from-dav"), [5, 0, 0]);
  await mustBeThere("/from-dav", { hasHollow: true });
  assert.deepEqual(await counted("--password-file", file, source, "/from-dav"), [0, 5, 0]);
  await writeFile(file, "wrong\n");
  const refused = await bringIn("--password-file", file, source, "/from-dav");
  assert.match(refused.err, /refuses this name and password \(401\)/);
  assert.equal(refused.code, 4);
});

async function serveWebDav(t: TestContext): Promise<number> {
  const port = await freePort();
  const words = [
    "serve",
    "webdav",
    "--addr",
    `127.0.0.1:${port}`,
    "--user",
    "ali",
    "--pass",
    "open sesame",
    tree,
  ];
  const env = { ...process.env, HOME: client.folder, RCLONE_CONFIG: "/dev/null" };
  const child: ChildProcess = spawn(RCLONE, words, { stdio: "ignore", env });
  t.after(async () => {
    const ended = once(child, "exit");
    child.kill();
    await ended;
  });
  await until(() => portAnswers(port), "rclone's WebDAV server");
  return port;
}

const [STORE] = OBJECT_STORES;

test("a bucket's objects come as files in folders", {
  skip: withoutStore(STORE) || withoutRclone,
}, async (t) => {
  const store = await startStore(STORE, (end) => t.after(end));
  const endpoint = `http://127.0.0.1:${store.port}`;
  const [id = "", secret = ""] = (await readFile(store.credentialsFile, "utf8"))
    .split("\n")
    .map((line) => line.split(" = ")[1]);
  execFileSync(RCLONE, ["copy", tree, `:s3:${store.bucket}/photos`], {
    env: {
      HOME: client.folder,
      RCLONE_CONFIG: "/dev/null",
      RCLONE_S3_PROVIDER: "Other",
      RCLONE_S3_ENDPOINT: endpoint,
      RCLONE_S3_ACCESS_KEY_ID: id,
      RCLONE_S3_SECRET_ACCESS_KEY: secret,
      RCLONE_S3_REGION: "us-east-1",
    },
  });
  const query = new URLSearchParams({ endpoint, credentials: store.credentialsFile });
  const source = `s3://${store.bucket}/photos?${query.toString()}`;
  assert.deepEqual(await counted(source, "/from-s3"), [5, 0, 0]);
  await mustBeThere("/from-s3", { hasHollow: false });
  assert.deepEqual(await counted(source, "/from-s3"), [0, 5, 0]);
});

test("a source with a secret, in the clear or of no known kind is refused, and no secret is repeated", async () => {
  const cases = [
    ["sftp://alice:hunter2@host/x", /password must not stand in the address/],
    ["http://alice@files.example.org/", /in the clear/],
    ["ftp://host/x", /ftp:\/\/ is no source/],
    ["sftp://-oProxyCommand=x@host/x", /ssh cannot take/],
    ["s3://a/?endpoint=https://hunter2@h&credentials=x", /store/],
    [join(tree, "none"), /there is no such file or folder on this machine/],
  ] as const;
  for (const [source, words] of cases) {
    const { code, err } = await bringIn(source, "/none");
    assert.notEqual(code, 0, source);
    assert.match(err, words);
    assert.doesNotMatch(err, /hunter2/);
  }
  await assert.rejects(stat(join(client.folder, "none")));
});
