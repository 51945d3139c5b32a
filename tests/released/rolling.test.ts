// Tests that a cluster in use is upgraded from a release process by process, and taken back, without a failed call.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { until } from "#testing/until.ts";
import { KEPT, PRESENT, released, run } from "./releases.ts";
import { startRollingCluster } from "./rolling-cluster.ts";
import { goBack, upgrade } from "./rolling-walk.ts";
import { makeSource, SteadyClient } from "./steady-client.ts";

/** A longer walk: npm run try:upgrade */
const FILES = Number(process.env["GROVE_UPGRADE_FILES"] ?? 40);
/** Rounds of every client between two steps. */
const ROUNDS = Number(process.env["GROVE_UPGRADE_ROUNDS"] ?? 0);

/** Waits until every client has finished something with the mixture. */
async function worked(clients: readonly SteadyClient[]): Promise<void> {
  const before = clients.map(({ calls, rounds }) => ({ calls, rounds }));
  for (const [index, client] of clients.entries()) {
    const { calls, rounds } = before[index] ?? { calls: 0, rounds: 0 };
    const hasWorked = (): boolean => client.calls > calls && client.rounds >= rounds + ROUNDS;
    await until(() => hasWorked() || client.failures.length > 0, "the clients' work");
  }
}

for (const version of KEPT) {
  test(`a cluster of ${version} is upgraded under put -r and get -r of clients of both versions, and taken back: no call fails, and nothing is lost`, {
    timeout: 1_800_000,
  }, async (t: TestContext) => {
    const old = released(version);
    const cluster = await startRollingCluster(t, old);
    const source = join(cluster.folder, "source");
    await makeSource(source, FILES);
    const clients = ["anna", "berta", "carl"].map(
      (name, index) => new SteadyClient(index === 1 ? PRESENT : old, cluster.folder, name),
    );
    for (const client of clients) {
      await client.call("login", "--metaserver", cluster.metaserver.address, "--mock", client.email);
    }
    const end = new AbortController();
    const work = clients.map((client) => client.work(source, end.signal));
    await until(() => clients.every(({ rounds, failures }) => rounds > 0 || failures.length > 0));
    await upgrade(cluster, () => worked(clients));
    await goBack(cluster, old, () => worked(clients));
    end.abort();
    await Promise.all(work);
    for (const client of clients) await client.checkAll(source);
    for (const node of cluster.nodes) {
      await node.stop();
      const { code, stdout } = await run(old, ["fsck", "-data", node.data, "-deep"]);
      assert.equal(code, 0, stdout);
    }
    assert.deepEqual(
      clients.flatMap(({ failures }) => failures),
      [],
    );
  });
}
