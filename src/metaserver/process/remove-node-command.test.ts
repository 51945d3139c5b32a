// `grove node remove` on the command line, beside the MetaServer that has the store open.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import type { Directory, HeldRoot, NodeRegistration } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { command } from "./node-command.ts";

const TIMEOUT = { timeout: 120_000 };

/** A store on a clock of the test, nodes with heartbeats of a given age, and the command on it. */
async function openStore(t: TestContext): Promise<{
  readonly directory: Directory;
  register(fsId: string, agoMs: number, owners?: readonly string[]): Promise<void>;
  remove(input: string, ...words: string[]): Promise<Outcome>;
  /** The same by a start of the program. */
  started(input: string, ...words: string[]): Promise<Outcome>;
}> {
  const url = `sqlite:${join(scratchFolder("metaserver-"), "metadata.db")}`;
  const clock = new ManualClock(Date.now());
  const directory = await openDirectory(url, { clock });
  t.after(() => directory.close());
  return {
    directory,
    async register(fsId, agoMs, owners = []) {
      const roots = owners.map(
        (owner): HeldRoot => ({ owner, rootId: `${fsId}-${owner}`, version: 1n, grants: [] }),
      );
      clock.jumpWall(-agoMs);
      await directory.register(registrationOf(fsId, roots));
      clock.jumpWall(agoMs);
    },
    remove: (input, ...words) => commandHere(command, ["remove", ...words, "-meta", url], { stdin: input }),
    started: (input, ...words) => runGrove(["node", "remove", ...words, "-meta", url], { input }),
  };
}

function registrationOf(fsId: string, roots: readonly HeldRoot[]): NodeRegistration {
  return {
    fsId,
    name: fsId,
    address: `${fsId}.example.com:50051`,
    softwareVersion: "0.1.0",
    clusterId: "",
    instanceId: `i-${fsId}`,
    dataId: `d-${fsId}`,
    diskTotalBytes: 2n ** 40n,
    diskFreeBytes: 2n ** 39n,
    diskReserveBytes: 0n,
    roots,
    speaker: { kind: "mock" },
  };
}

test(
  "a node that runs is not removed, one that has stopped is, and a second time nobody knows it",
  TIMEOUT,
  async (t) => {
    const { directory, register, remove } = await openStore(t);
    await register("n1", 0);
    await register("n2", NODE_LEASE_MS + 1_000);
    const running = await remove("", "n1");
    assert.notEqual(running.code, 0);
    assert.match(running.err, /n1 is running, or was until less than 30 s ago: stop it/);
    const { code, out, err } = await remove("", "n2");
    assert.equal(code, 0, err);
    assert.match(
      out,
      /^n2 is out of the cluster: it held no roots\.\nIts certificate .*: grove ca revoke n2 -ca_dir FOLDER\n$/,
    );
    assert.deepEqual(
      (await directory.nodes()).map(({ fsId }) => fsId),
      ["n1"],
    );
    const unknown = await remove("", "n2");
    assert.notEqual(unknown.code, 0);
    assert.match(unknown.err, /n2 is not known/);
  },
);

test(
  "a node that holds roots is refused with their users, and goes when their number is typed",
  TIMEOUT,
  async (t) => {
    const { directory, register, remove, started } = await openStore(t);
    await register("n2", NODE_LEASE_MS + 1_000, ["ada@example.com", "bob@example.com"]);
    const refused = await remove("", "n2");
    assert.notEqual(refused.code, 0);
    assert.match(
      refused.err,
      /^ {2}ada@example\.com\n {2}bob@example\.com\n.*n2 holds 2 roots, whose .*backup restore.*-abandon_roots/,
    );
    for (const typed of ["", "yes\n", "1\n", "3\n"]) {
      const wrong = await remove(typed, "n2", "-abandon_roots");
      assert.notEqual(wrong.code, 0, typed);
      assert.match(wrong.err, /that is not their number; nothing was removed/);
    }
    assert.equal((await directory.findRoot("ada@example.com"))?.fsId, "n2");
    const given = await started("2\n", "n2", "-abandon_roots", "-json");
    assert.equal(given.code, 0, given.err);
    assert.match(given.err, /Type their number to give them up: /);
    assert.deepEqual(JSON.parse(given.out), {
      removed: "n2",
      registered: true,
      abandoned_roots: 2,
      owners: ["ada@example.com", "bob@example.com"],
      ssh: false,
    });
    assert.equal(await directory.findRoot("ada@example.com"), undefined);
    assert.deepEqual(await directory.nodes(), []);
  },
);

test("how a node is reached over SSH goes with it, or by itself while the node stays", TIMEOUT, async (t) => {
  const { directory, register, remove } = await openStore(t);
  const place = { host: "n.example.com", port: 22, user: "grove", repository: "grove", services: {} };
  const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJzQ0fUkmCMLkqvhMVrHzQ1aXKLF0rXMqmUJ0yJIlhYr";
  for (const id of ["n1", "n2"]) await directory.putSshNode({ id, hostKey, ...place });
  await register("n1", 0);
  await register("n2", NODE_LEASE_MS + 1_000);
  assert.equal((await remove("", "n1", "-ssh_only")).out, "n1 is no longer reached over SSH.\n");
  assert.match(
    (await remove("", "n2")).out,
    /n2 is out of the cluster.*\nn2 is no longer reached over SSH\./,
  );
  assert.deepEqual(await directory.sshNodes(), []);
  assert.equal((await directory.nodes()).length, 1);
});
