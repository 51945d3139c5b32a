// `grove rebalance` on the command line, beside the MetaServer that has the store open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GIB, openStoreUnderCommands } from "./store-command.fixture.ts";

const TIMEOUT = { timeout: 180_000 };
const OWNERS = ["ada@example.com", "bob@example.com", "carol@example.com"];
const sized = (gib: number) => OWNERS.map((owner, index) => ({ owner, bytes: (gib - index) * Number(GIB) }));

test(
  "a rebalancing shows what would go where, asks, and moves it from the full node to the empty one",
  TIMEOUT,
  async (t) => {
    const { directory, register, actAsNodes, grove, started } = await openStoreUnderCommands(t);
    await register("n1", OWNERS, { diskFreeBytes: 220n * GIB });
    await register("n2", [], { diskFreeBytes: 820n * GIB });
    await register("n3", [], { diskFreeBytes: 990n * GIB });
    await directory.setDrained("n3", true);
    actAsNodes({ n1: sized(200), n2: [], n3: [] });
    const dry = await grove(["rebalance", "-dry_run"]);
    assert.equal(dry.code, 0, dry.err);
    assert.equal(dry.out, "n1 → n2: 1 root, 200 GiB\n  ada@example.com  200 GiB\n");
    const declined = await grove(["rebalance"], "no\n");
    assert.notEqual(declined.code, 0);
    assert.deepEqual(await directory.rootMoves(), []);
    const moved = await started(["rebalance"], "yes\n");
    assert.equal(moved.code, 0, moved.err);
    assert.match(moved.out, /ada@example\.com lives on n2 now\.\n1 root moved\./);
    assert.equal((await directory.findRoot("ada@example.com"))?.fsId, "n2");
    // It waits to be confirmed, and does not move again.
    const again = await grove(["rebalance", "-dry_run", "-json"]);
    assert.ok(!again.out.includes("ada@example.com"), again.out);
    const confirmed = await grove(["rebalance", "-confirm"]);
    assert.equal(confirmed.out, "The former nodes remove their copies of 1 root.\n");
    assert.deepEqual(
      (await directory.rootMoves()).map(({ state }) => state),
      ["confirmed"],
    );
  },
);

test(
  "a root that stays is named, also in the document, and ends the command with an error",
  TIMEOUT,
  async (t) => {
    const { register, grove, actAsNodes } = await openStoreUnderCommands(t);
    await register("n1", OWNERS.slice(0, 1), { diskFreeBytes: 220n * GIB });
    await register("n2", [], { diskFreeBytes: 820n * GIB });
    actAsNodes({ n1: sized(200).slice(0, 1), n2: [] }, "undo");
    const { code, out, err } = await grove(["rebalance", "-yes", "-json"]);
    assert.notEqual(code, 0);
    const stayed = [{ owner: "ada@example.com", problem: "its move was undone" }];
    assert.deepEqual(JSON.parse(out), { moved: [], stayed });
    assert.match(err, /1 root did not move; the same again plans anew/);
  },
);

test("nodes in balance are left alone, and one that tells no sizes is named", TIMEOUT, async (t) => {
  const { register, actAsNodes, grove } = await openStoreUnderCommands(t);
  await register("n1", OWNERS.slice(0, 1));
  await register("n2");
  await register("n3");
  actAsNodes({ n1: sized(3).slice(0, 1), n2: [] });
  const { code, out, err } = await grove(["rebalance", "-yes"]);
  assert.equal(code, 0, err);
  assert.equal(out, "The nodes are in balance: nothing would move.\n");
  assert.match(err, /Note: n3 does not tell how large its roots are, so they stay\./);
});

test(
  "a rebalancing waits for no node on the shared engine, and plans nothing with it",
  TIMEOUT,
  async (t) => {
    const { register, actAsNodes, grove } = await openStoreUnderCommands(t);
    await register("n1", OWNERS, { diskFreeBytes: 220n * GIB });
    await register("n2", [], { diskFreeBytes: 990n * GIB, onEngine: true });
    actAsNodes({ n1: sized(200) });
    const { code, out, err } = await grove(["rebalance", "-dry_run"]);
    assert.equal(code, 0, err);
    assert.equal(out, "The nodes are in balance: nothing would move.\n");
    assert.match(
      err,
      /^Note: n2 serves roots of the shared engine, and this plan leaves it out: their disks hold no roots\.\n$/,
    );
  },
);
