// Tests locks as the command line meets them: what a refusal says, and how they are listed and ended.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { TestClient, VerbResult } from "./client.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";

const ALICE = "alice@example.com";
const BOB = "bob@example.com";
let client: TestClient;
let server: ServerProcess;
let channel: GrpcChannel;
let files: Client<typeof FileServer>;

before(async () => {
  ({ client, server } = await signedInClient(ALICE));
  channel = new GrpcChannel({ addresses: [server.address] });
  files = createClient(FileServer, channel);
});

after(async () => {
  channel.close();
  await server.kill("SIGKILL");
  await client.stop();
});

const unlock = (...words: string[]): Promise<VerbResult> => client.run(import("./unlock-command.ts"), words);
const bearer = (token: string) => ({ metadata: { authorization: `Bearer ${token}` } });
const session = async (user: string) =>
  bearer((await files.registerClient({ deviceName: "editor" }, bearer(`mock-jwt.${user}`))).sessionToken);

test("a refusal names who holds the lock and the command that ends it; after it the change goes through", async () => {
  const file = join(client.folder, "content");
  writeFileSync(file, "hello");
  const put = () => client.run(import("./put-command.ts"), ["-q", file, "/docs/the plan.odt"]);
  assert.equal((await client.run(import("./mkdir-command.ts"), ["/docs"])).code, 0);
  assert.equal((await put()).code, 0);
  assert.equal((await client.run(import("./share-command.ts"), ["/docs", BOB])).code, 0);
  await files.lock({ root: ALICE, path: "/docs/the plan.odt" }, await session(BOB));

  for (const result of [
    await put(),
    await client.run(import("./rm-command.ts"), ["/docs/the plan.odt"]),
    await client.run(import("./rm-command.ts"), ["-r", "--permanent", "--yes", "/docs"]),
    await client.run(import("./mv-command.ts"), ["/docs/the plan.odt", "/docs/b"]),
  ]) {
    assert.notEqual(result.code, 0);
    assert.match(result.err, /\/docs\/the plan\.odt: locked by bob@example\.com/u);
    assert.match(result.err, /grove unlock --break '\/docs\/the plan\.odt'/u);
  }
  const why = await client.run(import("./why-command.ts"), ["/docs/the plan.odt", "write"]);
  assert.match(why.out, /no {2}locked by bob@example\.com/u);

  const listed = await unlock("--list", "/");
  assert.equal(listed.out, "/docs/the plan.odt  bob@example.com, 60 min yet\n");
  const own = await unlock("/docs/the plan.odt");
  assert.match(own.err, /locked by bob@example\.com, and not by you/u);
  assert.equal(
    (await unlock("--break", "/docs/the plan.odt")).out,
    "/docs/the plan.odt is no longer locked.\n",
  );
  assert.equal((await unlock("--list", "/")).err, "Nothing is locked there.\n");
  assert.equal((await put()).code, 0);
});

test("one's own lock ends without a question, and JSON tells the same", async () => {
  await files.lock({ path: "/docs", deep: true, shared: true, seconds: 120 }, await session(ALICE));
  const { locks } = JSON.parse((await unlock("--list", "--json", "/docs")).out) as { locks: object[] };
  assert.deepEqual(
    locks.map((lock) => ({ ...lock, seconds_left: 0 })),
    [{ path: "/docs", user: ALICE, shared: true, deep: true, seconds_left: 0 }],
  );
  assert.equal((await unlock("/docs")).out, "/docs is no longer locked.\n");
  assert.equal((await unlock("/docs")).err, "/docs was not locked; nothing has changed.\n");
});
