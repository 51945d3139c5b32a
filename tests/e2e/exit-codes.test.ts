// Tests of every exit code of the client at real servers, with its two sentences.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { freePlace, grove, type StartedNode, startNode, stopProgram } from "./processes.ts";

const PASSWORD = "correct horse battery staple";

async function startedNode(t: TestContext, folder: string, reserve?: string): Promise<StartedNode> {
  const node = await startNode({
    data: folder,
    env: { SVC_AUTH_MOCK: "1", ADMIN_PASSWORD: PASSWORD },
    ...(reserve === undefined ? {} : { flags: ["-reserve", reserve] }),
  });
  t.after(() => stopProgram(node, "SIGKILL"));
  return node;
}

async function setQuota(address: string, username: string, quotaBytes: bigint): Promise<void> {
  const channel = new GrpcChannel({ addresses: [address] });
  const hash = createHash("sha256").update(PASSWORD).digest("hex");
  const reply = await createClient(FileServer, channel).setQuota(
    { username, quotaBytes },
    { metadata: { "x-admin-password-hash": hash } },
  );
  channel.close();
  assert.equal(reply.error, "");
}

test("what people type ends with the exit code of its outcome and says what to do (D24)", {
  timeout: 180_000,
}, async (t) => {
  const scratch = scratchFolder("grove-e2e-");
  const node = await startedNode(t, join(scratch, "data"));
  const full = await startedNode(t, join(scratch, "full"), "1000000GiB");
  const signedIn = async (name: string, address: string): Promise<Record<string, string>> => {
    const env = { GROVE_CONFIG_DIR: join(scratch, `config ${name}`) };
    const words = ["login", "--mock", `${name}@example.com`, "--fileserver", address];
    const login = await grove(words, { env });
    assert.equal(login.code, 0, login.stderr);
    return env;
  };
  const [alice, bob, carol] = await Promise.all([
    signedIn("alice", node.address),
    signedIn("bob", node.address),
    signedIn("carol", full.address),
  ]);
  const nobody = { GROVE_CONFIG_DIR: join(scratch, "config nobody") };
  const closed = (await freePlace()).address;
  for (const name of ["tree", "plain"]) {
    await mkdir(join(scratch, name));
    await writeFile(join(scratch, name, "file"), "0123456789");
  }
  await symlink("/etc/passwd", join(scratch, "tree", "link"));
  assert.equal((await grove(["mkdir", "/docs"], { env: alice })).code, 0);
  await setQuota(node.address, "bob@example.com", 9n);
  const file = join(scratch, "tree", "file");

  const cases: [code: number, env: Record<string, string>, words: string[], says: RegExp][] = [
    [0, alice, ["put", file], /uploaded 1 file, 10 B/],
    [1, alice, ["put", "-r", join(scratch, "tree")], /link: skipped, symbolic link that leads out/],
    [1, alice, ["ls", "--no-such-flag"], /unknown option.*'grove ls --help' explains it/],
    [1, alice, ["lss"], /there is no command "lss"; did you mean 'grove ls'/],
    [1, alice, ["rm", "--permanent", "--yes", "/docs"], /is a folder\. Add -r/],
    [1, alice, ["mkdir", "/docs"], /\/docs: .*(?:taken|exists)/],
    [2, nobody, ["ls"], /You are not signed in\. Sign in: grove login/],
    [2, nobody, ["whoami"], /You are not signed in/],
    [3, alice, ["cat", "/none"], /\/none: no such file or directory\. /],
    [3, alice, ["put", join(scratch, "none")], /there is no such file or folder on this machine\. /],
    [4, alice, ["ls", "bob@example.com:/"], /nothing here that you may see\. /],
    [4, alice, ["rm", "--permanent", "--yes", "bob@example.com:/x"], /bob@example\.com:\/x: .*\. ['A-Z]/],
    [5, bob, ["put", file], /The quota of bob@example\.com is 9 B.*\. Delete/],
    [5, bob, ["put", "-r", join(scratch, "plain")], /The quota of bob@example\.com is 9 B.*1 failed/s],
    [6, carol, ["put", file], /cannot write 10 bytes \(usable free space: 0 bytes, .* reserved/],
    [6, carol, ["mkdir", "/folder"], /reserved/],
    [0, carol, ["ls"], /^$/],
    [7, nobody, ["login", "--mock", "a@example.com", "--fileserver", closed], /cannot be reached.*\. Check/],
  ];
  const run = async ([expected, env, words, says]: (typeof cases)[number]): Promise<void> => {
    const { code, stdout, stderr } = await grove(words, { env });
    const typed = words.join(" ");
    assert.equal(code, expected, `${typed}: ${stderr}`);
    assert.match(stderr + stdout, says, typed);
    if (code !== 0) assert.equal(stdout, "", typed);
    assert.doesNotMatch(stderr, /\n {4}at |undefined|\[object/, typed);
  };
  await Promise.all(cases.map(run));
  const json = await grove(["cat", "/none", "--json"], { env: alice });
  const { error } = JSON.parse(json.stderr) as { error: { code: string; metadata: { path: string } } };
  assert.deepEqual([json.code, error.code, error.metadata.path], [3, "NO_SUCH_PATH", "/none"]);
});
