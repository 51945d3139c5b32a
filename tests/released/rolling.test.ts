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
const FILES = Number(process.env["GROVE_UPGRADE_FILES"] ?? 20);
/** Rounds of every client between two steps. */
const ROUNDS = Number(process.env["GROVE_UPGRADE_ROUNDS"] ?? 0);

/**
 * Replaces programs while one client fetches and others have begun, and waits until each has finished something.
 * Nobody does more than what runs meanwhile, or one round after it.
 */
async function step(
  clients: readonly SteadyClient[],
  fetching: SteadyClient,
  replace: () => Promise<void>,
): Promise<void> {
  for (const client of clients) client.goOn();
  await until(() => fetching.isInMidst || fetching.failures.length > 0, "a download");
  for (const client of clients) client.rest();
  await replace();
  const work = clients.map(async (client) => {
    const { calls, rounds } = client;
    const hasWorked = (): boolean => client.calls > calls && client.rounds >= rounds + ROUNDS;
    if (ROUNDS > 0) client.goOn();
    await until(() => {
      if (hasWorked() || client.failures.length > 0) return true;
      if (client.isResting) client.goOn();
      if (ROUNDS === 0) client.rest();
      return false;
    }, "the clients' work");
    // It waits with its next transfers, so that they run when the next program is replaced.
    client.rest();
  });
  await Promise.all(work);
}

for (const version of KEPT) {
  test(`a cluster of ${version} is upgraded under put -r and get -r of clients of both versions, and taken back: no call fails, and nothing is lost`, {
    timeout: 1_800_000,
  }, async (t: TestContext) => {
    const old = released(version);
    const cluster = await startRollingCluster(t, old);
    const [whole, small] = [join(cluster.folder, "whole"), join(cluster.folder, "small")];
    await makeSource(whole, FILES);
    await makeSource(small, FILES, 1);
    // The large file goes with every third round of each client, and so with that of one at most times.
    const sourcesOf = (index: number): string[] =>
      clients.map((_, round) => (round === index ? whole : small));
    const clients = ["anna", "berta", "carl"].map(
      (name, index) => new SteadyClient(index === 1 ? PRESENT : old, cluster.folder, name),
    );
    for (const client of clients) {
      await client.call("login", "--metaserver", cluster.metaserver.address, "--mock", client.email);
    }
    const end = new AbortController();
    const work = clients.map((client, index) => client.work(sourcesOf(index), end.signal));
    await until(() => clients.every(({ rounds, failures }) => rounds > 0 || failures.length > 0));
    let steps = 0;
    const next = (replace: () => Promise<void>): Promise<void> => {
      const fetching = clients[steps++ % clients.length];
      assert.ok(fetching !== undefined);
      return step(clients, fetching, replace);
    };
    await upgrade(cluster, next);
    await goBack(cluster, old, next);
    end.abort();
    for (const client of clients) client.goOn();
    await Promise.all(work);
    for (const [index, client] of clients.entries()) await client.checkAll(sourcesOf(index));
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
