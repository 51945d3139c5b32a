// Tests of the shell as somebody types into it: pasted lines, Tab, flags, another cluster.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";
import type { TestClient, VerbResult } from "./client.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";

let client: TestClient;
let server: ServerProcess;

before(async () => {
  ({ client, server } = await signedInClient());
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

/** A line that is lost leaves the shell waiting for its end. */
const LIMIT = { timeout: 60_000 };

/** Types pieces, each of which comes at once, into a shell on a terminal. */
function typed(...pieces: readonly string[]): Promise<VerbResult> {
  const keys = new PassThrough();
  const ended = client.run(import("./shell-command.ts"), [], { stdin: keys, isTty: true, isAsked: true });
  for (const piece of pieces) keys.write(piece);
  return ended;
}

test(
  "of lines that are pasted at once each one runs, and the last one goes on being typed",
  LIMIT,
  async () => {
    const { code, out, err } = await typed("mkdir /a\nmkdir /a/b\r\ncd /a\nls", " .\nexit\n");
    assert.equal(code, 0, err);
    assert.equal(err, "");
    assert.match(out, /\/> mkdir \/a\/b\n[^]*\/> cd \/a\n[^]*\/a> [^]*b\/\n/);
  },
);

test("a line that ends while its Tab waits for names leaves the shell running", LIMIT, async () => {
  const { code, out } = await typed("ls /a\t\nls /a\t\t", "\npwd\nexit\n");
  assert.equal(code, 0);
  assert.match(out, /\n\/a?\n/);
});

test(
  "flags of one dash are taken, and refusals name the verb's help, as outside of the shell",
  LIMIT,
  async () => {
    const { out, err } = await typed("ls -json /a\nls -jsn\nls --json --frob\nls --help\nexit\n");
    assert.match(out, /\{"root":"","path":"\/a","entries":\[/);
    const [jsn, frob] = err.split("\n");
    assert.equal(
      jsn,
      "grove ls: unknown option '--jsn' (Did you mean --json?). 'grove ls --help' explains it.",
    );
    assert.equal((JSON.parse(frob ?? "") as { error: { code: string } }).error.code, "USAGE");
    assert.match(out, /Usage: grove ls /);
  },
);

test("a verb does not take the flag of another cluster and ask this one", LIMIT, async () => {
  const { err } = await typed("ls --fileserver 127.0.0.1:1 /a\nexit\n");
  assert.match(
    err,
    /^grove ls: The verbs of a shell stay with the cluster .* Give the flag to 'grove shell'\.\n$/,
  );
});

test("a Tab waits a few seconds for a server that does not answer", LIMIT, async () => {
  const { env } = client;
  client.env = { ...env, GROVE_RETRY_SECONDS: "86400" };
  server.child.kill("SIGSTOP");
  const { out, err } = await typed("ls /\t", "\u0003", "exit\n");
  server.child.kill("SIGCONT");
  client.env = env;
  assert.match(out, /exit/);
  assert.equal(err, "");
});
