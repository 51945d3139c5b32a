// Tests of `grove trash ls --of` and `restore --of` against a real FileServer, for administrators and users.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { ClientContext } from "#client/connection/client-context.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { makeTestClient, type TestClient, type VerbInput, type VerbResult } from "./client.fixture.ts";
import { tellLooks } from "./operator-trash.ts";
import { type ServerProcess, startServer } from "./server-processes.fixture.ts";

let bob: TestClient;
let operator: TestClient;
let server: ServerProcess;

before(async () => {
  bob = await makeTestClient();
  operator = await makeTestClient();
  const [port = 0] = await freeGrpcPorts(1);
  const data = join(bob.folder, "node");
  server = await startServer(
    ["fileserver", "--data", data, "--listen", `127.0.0.1:${port}`, "--reserve", "1MiB"],
    port,
    { ADMIN_PASSWORD_HASH: hash("sha256", "opens", "hex") },
  );
  for (const [client, email] of [
    [bob, "bob@example.com"],
    [operator, "op@example.com"],
  ] as const) {
    const login = ["--mock", email, "--fileserver", server.address];
    assert.equal((await client.run(import("./login-command.ts"), login)).code, 0);
  }
  const file = join(bob.folder, "content");
  writeFileSync(file, "hello");
  const put = await bob.run(import("./put-command.ts"), ["-q", file, "/plan.txt"]);
  assert.equal(put.code, 0, put.err);
  assert.equal((await bob.run(import("./rm-command.ts"), ["/plan.txt"])).code, 0);
});

after(async () => {
  await server.kill("SIGKILL");
  await bob.stop();
  await operator.stop();
});

const trash = (client: TestClient, words: readonly string[], input?: VerbInput): Promise<VerbResult> =>
  client.run(import("./trash-command.ts"), words, input);
const OF = ["--of", "bob@example.com"];
const PASSWORD = { stdin: "opens\n" };

test("who is no administrator is refused, with or without a wrong password", async () => {
  for (const [words, input] of [
    [OF, {}],
    [[...OF, "--reason", "x", "--admin-password"], { stdin: "wrong\n" }],
  ] as const) {
    const refused = await trash(operator, ["ls", ...words], input);
    assert.match(refused.err, /only a cluster administrator may do this/);
    assert.notEqual(refused.code, 0);
    assert.equal(refused.out, "");
  }
});

test("an administrator lists without names, then with a reason, brings a file back, and the user is told of it", async () => {
  const unnamed = await trash(operator, ["ls", ...OF, "--admin-password"], PASSWORD);
  assert.match(unnamed.out, /^\S+ +\S+ \S+ +5 B +until \S+ +by bob@example\.com +…\n$/);
  assert.match(unnamed.err, /Names are told with --reason, which bob@example\.com is shown\./);
  assert.ok(!(unnamed.out + unnamed.err).includes("plan"));
  const reason = ["--reason", "ticket 4711", "--admin-password"];
  const named = await trash(operator, ["ls", ...OF, ...reason], PASSWORD);
  assert.match(named.out, /by bob@example\.com +\/plan\.txt\n$/);
  const unreasoned = await trash(operator, ["restore", "/plan.txt", ...OF]);
  assert.match(unreasoned.err, /for a reason only\. Add --reason TEXT/);
  const back = await trash(operator, ["restore", "/plan.txt", ...OF, ...reason], PASSWORD);
  assert.match(
    back.err,
    /bob@example\.com:\/plan\.txt is back\. bob@example\.com is shown that you did it, and why\./,
  );
  const told = await trash(bob, ["ls"]);
  assert.match(told.err, /op@example\.com, an administrator, brought \/plan\.txt back: ticket 4711\n/);
  assert.match(
    told.err,
    /op@example\.com, an administrator, looked at the names in your trash: ticket 4711\n/,
  );
  const json = JSON.parse((await trash(bob, ["ls", "--json"])).out) as { operator_looks: { by: string }[] };
  assert.equal(json.operator_looks[0]?.by, "op@example.com");
});

test("where an administrator proved the password alone, the user reads of an administrator without a name", () => {
  const notes: string[] = [];
  const context = { note: (text: string) => void notes.push(text) } as unknown as ClientContext;
  const look = { atMs: 1_790_000_000_000n, by: "administrator", reason: "ticket", restoredPath: "/f" };
  tellLooks(context, [{ $typeName: "grove.v1.OperatorLook", ...look }]);
  assert.match(notes.join("\n"), /: an administrator brought \/f back: ticket$/);
});
