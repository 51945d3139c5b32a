// Tests that thousands of users keep their one root each when the metadata store is lost (D19).
//
// GROVE_REGISTERED_USERS=84000 makes it as large as a node of a large site.
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { ManualClock } from "#base/clock.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { type LogFields, type Logger, silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { registrationPages } from "#fileserver/control/registration-pages.ts";
import { startTestNode, type TestNode } from "#fileserver/process/node.fixture.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { openKnownNodesFile } from "#metaserver/process/known-nodes-file.ts";
import { type RunningMetaServer, startMetaServer } from "#metaserver/process/meta-server.ts";
import { openTicketSigner } from "#metaserver/process/ticket-signer.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer, RegisterFileServerRequestSchema } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** Of several pages. */
const USERS = Number(process.env["GROVE_REGISTERED_USERS"] ?? 28_000);
const USERS_OF_A_PAGE = 8_000;
const ownerOf = (user: number): string =>
  `user.with.a.long.name.${String(user).padStart(8, "0")}@department.example.com`;

interface Heard {
  readonly log: Logger;
  readonly events: { readonly event: string; readonly fields: LogFields }[];
}

function listener(): Heard {
  const events: Heard["events"] = [];
  const keep = (event: string, fields: LogFields = {}): number => events.push({ event, fields });
  return { events, log: { ...silentLogger, info: keep, warn: keep, error: keep } };
}

async function startMeta(
  folder: string,
  heard: Heard,
  clock: ManualClock,
  port = 0,
): Promise<RunningMetaServer> {
  const file = await openKnownNodesFile(folder);
  return startMetaServer({
    directory: await openDirectory(`sqlite:${join(folder, "metadata.db")}`, {
      clock,
      clusterId: "CLUSTER",
    }),
    tokenVerifier: createTokenVerifier({ clientId: undefined, mock: true, clock }),
    rememberCluster: async () => {},
    knownNodes: file,
    audit: () => undefined,
    clock,
    log: heard.log,
    listen: { host: "127.0.0.1", port },
    mock: true,
    reflection: false,
    ticketSigner: await openTicketSigner(folder, { clock, random: systemRandom }),
    random: systemRandom,
  });
}

async function fill(node: TestNode): Promise<void> {
  for (let from = 0; from < USERS; from += 2_000) {
    const users = Array.from({ length: 2_000 }, (_, at) => from + at);
    await Promise.all(
      users.map((user) =>
        node.node.storage.createRoot({
          owner: ownerOf(user),
          rootId: `ROOT${String(user).padStart(22, "0")}`,
        }),
      ),
    );
  }
}

function rootsOf(port: number, t: TestContext): (user: string) => Promise<string> {
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
  t.after(() => channel.close());
  const client = createClient(MetaServer, channel);
  return async (user) => {
    const metadata = { authorization: `Bearer mock-jwt.${user}` };
    const { roots } = await client.getRoots({}, { metadata, timeoutMs: 20_000 });
    return roots[0]?.rootId ?? "";
  };
}

test("thousands of users of one node are registered in pages, again after a restart, and again for a lost store that waits for them", {
  timeout: 240_000,
}, async (t) => {
  const folder = scratchFolder("grove-large-");
  const heard = listener();
  const clock = new ManualClock();
  let meta = await startMeta(folder, heard, clock);
  const { port } = meta.address;
  const options = { metaservers: [`127.0.0.1:${port}`], advertise: "n1.example.net:50051" };
  const dataFolder = join(folder, "n1");
  const alone = await startTestNode({ dataFolder });
  await fill(alone);
  await alone.node.stop();
  const registered = (): LogFields[] =>
    heard.events.filter(({ event }) => event === "node_registered").map(({ fields }) => fields);
  let node = await startTestNode({ dataFolder, options });
  await until(() => registered().length === 1, "registered");
  const pages = Number(registered()[0]?.["pages"]);
  assert.ok(pages > USERS / USERS_OF_A_PAGE, String(pages));
  await node.node.stop();
  node = await startTestNode({ dataFolder, options });
  t.after(() => node.stop());
  await until(() => registered().length === 2, "registered again");
  assert.deepEqual(
    registered().map(({ epoch }) => epoch),
    [1, 2],
  );
  await node.node.stop();
  await meta.stop();

  // The store is lost, and the node is late.
  for (const name of ["metadata.db", "metadata.db-wal", "metadata.db-shm"]) {
    await rm(join(folder, name), { force: true });
  }
  meta = await startMeta(folder, heard, clock, port);
  t.after(() => meta.stop());
  const rootOf = rootsOf(port, t);
  const late = rootOf(ownerOf(USERS - 1));
  await assert.rejects(late, /UNAVAILABLE|wait/);
  clock.advance(NODE_LEASE_MS);
  await assert.rejects(
    rootOf(ownerOf(USERS - 1)),
    /listed the roots that they hold: n1;.*grove node lost ID/,
  );
  node = await startTestNode({ dataFolder, options });
  await until(() => registered().length === 3, "registered with the new store");
  for (const user of [0, USERS / 2, USERS - 1]) {
    assert.equal(await rootOf(ownerOf(user)), `ROOT${String(user).padStart(22, "0")}`);
  }
  assert.ok((await rootOf("somebody.new@example.com")).length > 0);
});

test("no page of a registration is larger than 1 MiB, whatever the roots are like", () => {
  const grants = Array.from({ length: 60 }, () => ({ path: `/${"p".repeat(4_000)}`, user: ownerOf(1) }));
  const roots = Array.from({ length: 3_000 }, (_, user) => ({
    owner: ownerOf(user),
    rootId: "R".repeat(26),
    version: 2n ** 60n,
    issuer: "i".repeat(200),
    subject: "s".repeat(255),
    ...(user % 100 === 0 ? { grants } : {}),
  }));
  const departed = Array.from({ length: 20_000 }, (_, root) => ({
    rootId: String(root).padStart(26, "R"),
    fsId: "n".repeat(63),
    moveId: "M".repeat(26),
  }));
  const pages = registrationPages(roots, departed);
  assert.deepEqual(
    pages.flatMap((page) => page.roots),
    roots,
  );
  assert.deepEqual(
    pages.flatMap((page) => page.departed),
    departed,
  );
  for (const page of pages) {
    const message = create(RegisterFileServerRequestSchema, { fsId: "n".repeat(63), ...page });
    assert.ok(toBinary(RegisterFileServerRequestSchema, message).length < 1_048_576);
  }
  assert.deepEqual(registrationPages([]), [{ roots: [], departed: [] }]);
});
