// A MetaServer remembers nodes beside its store, and a lost store waits for them (D19).
import assert from "node:assert/strict";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Code } from "#wire/framing/status.ts";
import { KNOWN_NODES_INTERVAL_MS } from "./known-nodes.ts";
import { openKnownNodesFile } from "./known-nodes-file.ts";
import { as, nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";

const TIMEOUT = { timeout: 60_000 };
const NAME = "known_nodes.json";

test(
  "nodes are remembered as they register, and a new store in the old one's place waits for all of them",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("metaserver-");
    const clock = new ManualClock();
    const before = (await startForTest(t, { folder, clock })).connect();
    await before.registerFileServer(nodeMessage("n1"));
    await before.registerFileServer(nodeMessage("n2"));
    const { rootId } = await before.navigate({}, as("u@example.com"));
    assert.deepEqual(JSON.parse(await readFile(join(folder, NAME), "utf8")), {
      schema: 1,
      nodes: ["n1", "n2"],
    });

    const meta = await startForTest(t, { folder, clock });
    const after = meta.connect();
    const { clusterId } = await after.registerFileServer(nodeMessage("n1", { clusterId: "OLD" }));
    assert.equal(clusterId, "OLD");
    clock.advance(NODE_LEASE_MS);
    await after.heartbeat({ fsId: "n1", epoch: 1n });
    await refused(after.navigate({}, as("u@example.com")), Code.UNAVAILABLE, "STARTING");
    assert.ok(
      meta.logged.some(({ event, fields }) => event === "roots_awaited" && fields["nodes"] === "n1,n2"),
    );
    const roots = [{ owner: "u@example.com", rootId, version: 1n }];
    await after.registerFileServer(nodeMessage("n2", { clusterId: "OLD", roots }));
    assert.equal((await after.navigate({}, as("u@example.com"))).fsId, "n2");
    assert.ok((await after.navigate({}, as("new@example.com"))).rootId);
    assert.deepEqual(JSON.parse(await readFile(join(folder, NAME), "utf8")), {
      schema: 1,
      nodes: ["n1", "n2"],
    });
  },
);

test(
  "a node that was given up is forgotten, and another MetaServer's nodes are learnt",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("metaserver-");
    await writeFile(join(folder, NAME), JSON.stringify({ schema: 1, nodes: ["gone"] }));
    const clock = new ManualClock();
    const { directory } = await startForTest(t, { folder, clock });
    assert.deepEqual((await directory.missingLists()).awaited, ["gone"]);
    await directory.giveUpNode("gone");
    await directory.awaitNodes(["n5"]);
    clock.advance(KNOWN_NODES_INTERVAL_MS);
    const kept = async (): Promise<string> => readFile(join(folder, NAME), "utf8");
    for (let looks = 0; looks < 500 && (await kept()).includes("gone"); looks++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual(JSON.parse(await kept()), { schema: 1, nodes: ["n5"] });
  },
);

test("a list that could not be written is written the next time, and none counts as kept before", async () => {
  const folder = join(scratchFolder("metaserver-"), "data");
  const away = `${folder}-away`;
  await mkdir(folder);
  const file = await openKnownNodesFile(folder);
  await rename(folder, away);
  await assert.rejects(file.remember(["n1"]));
  assert.ok(!file.has("n1"));
  await rename(away, folder);
  await file.remember(["n1"]);
  assert.ok(file.has("n1"));
  assert.deepEqual((await openKnownNodesFile(folder)).nodes, ["n1"]);
});

test(
  "a file that cannot be understood is as good as none; a newer Grove's is left alone",
  TIMEOUT,
  async () => {
    const folder = scratchFolder("metaserver-");
    for (const text of ["", "{", "[]", '{"schema":1,"nodes":["Not/An/Id"]}', '{"schema":1}']) {
      await writeFile(join(folder, NAME), text);
      assert.deepEqual((await openKnownNodesFile(folder)).nodes, [], text);
    }
    await writeFile(join(folder, NAME), '{"schema":2,"nodes":[]}');
    await assert.rejects(openKnownNodesFile(folder), /newer Grove/);
  },
);
