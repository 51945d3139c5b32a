// Tests of Ctrl-C and of signals: in the shell while a server does not answer, at questions, and while input or
// output rests.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import { until } from "#testing/until.ts";
import type { TestClient, VerbResult } from "./client.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";

let client: TestClient;
let server: ServerProcess;

before(async () => {
  ({ client, server } = await signedInClient());
  client.env = { ...client.env, GROVE_RETRY_SECONDS: "86400" };
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

/** What no signal ends waits for ever. */
const LIMIT = { timeout: 120_000 };
/** Listeners of a shell, and of the verb that runs in it. */
const SHELL = 1;
const VERB = 2;

/** Waits until so many actions hear signals. */
const heard = (count: number): Promise<true> => until(() => process.listenerCount("SIGINT") === count);
const signal = (name: "SIGINT" | "SIGTERM"): boolean => process.emit(name, name);

/** Begins a shell in which verbs wait for their server. */
function begun(isTyped: boolean): { readonly keys: PassThrough; readonly ended: Promise<VerbResult> } {
  const keys = new PassThrough();
  const ended = client.run(import("./shell-command.ts"), [], {
    stdin: keys,
    isTty: isTyped,
    isAsked: isTyped,
  });
  return { keys, ended };
}

test("Ctrl-C ends each verb of a shell on a terminal, and the shell goes on", LIMIT, async () => {
  const { keys, ended } = begun(true);
  server.child.kill("SIGSTOP");
  for (let round = 0; round < 3; round++) {
    keys.write("ls /\n");
    await heard(VERB);
    signal("SIGINT");
    await heard(SHELL);
  }
  server.child.kill("SIGCONT");
  keys.write("pwd\nexit\n");
  const { code, out, err } = await ended;
  assert.equal(code, 0);
  assert.equal(err, "grove ls: Interrupted.\n".repeat(3));
  assert.match(out, /\n\/\n/);
});

test("SIGTERM ends a shell at its prompt, and one whose verb runs", LIMIT, async () => {
  const waiting = begun(true);
  await heard(SHELL);
  signal("SIGTERM");
  assert.equal((await waiting.ended).code, 130);
  const working = begun(true);
  server.child.kill("SIGSTOP");
  working.keys.write("ls /\n");
  await heard(VERB);
  signal("SIGTERM");
  assert.equal((await working.ended).code, 130);
  server.child.kill("SIGCONT");
});

test("Ctrl-C ends a script that is piped into a shell, with what was to follow", LIMIT, async () => {
  const { keys, ended } = begun(false);
  server.child.kill("SIGSTOP");
  keys.write("ls /\nmkdir /after\n");
  await heard(VERB);
  signal("SIGINT");
  const { code } = await ended;
  server.child.kill("SIGCONT");
  assert.equal(code, 130);
  assert.equal((await client.run(import("./ls-command.ts"), ["/"])).out, "");
});

test("Ctrl-C at a question ends its verb with 130, and Ctrl-D answers no", LIMIT, async () => {
  await client.run(import("./mkdir-command.ts"), ["/kept"]);
  const asked = (key: string): Promise<VerbResult> =>
    client.run(import("./rm-command.ts"), ["-r", "--permanent", "/kept"], {
      stdin: key,
      isTty: true,
      isAsked: true,
    });
  assert.equal((await asked("\u0003")).code, 130);
  const { code, err } = await asked("\u0004");
  assert.equal(code, 0);
  assert.match(err, /\nNothing was deleted\.\n$/);
});

test("Ctrl-C ends a write whose input rests, and leaves the file as it was", LIMIT, async () => {
  assert.equal((await client.run(import("./write-command.ts"), ["/w"], { stdin: "abc" })).code, 0);
  for (const words of [["/w"], ["--offset", "1", "/w"]]) {
    const keys = new PassThrough();
    const ended = client.run(import("./write-command.ts"), words, { stdin: keys });
    // More than streams hold on their way: it is being read, and less than a chunk.
    keys.write(Buffer.alloc(1_000_000));
    await until(() => keys.readableLength + keys.writableLength === 0);
    signal("SIGINT");
    assert.equal((await ended).code, 130);
  }
  assert.equal((await client.run(import("./cat-command.ts"), ["/w"])).out, "abc");
});

test("Ctrl-C ends commands whose reader takes nothing more", LIMIT, async (t) => {
  const written = { stdin: Buffer.alloc(3_000_000, 32) };
  assert.equal((await client.run(import("./write-command.ts"), ["/large"], written)).code, 0);
  const child = spawn(GROVE_LAUNCHER, ["cat", "/large"], {
    env: { ...process.env, ...client.env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "readable");
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [130, null]);
});
