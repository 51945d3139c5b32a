// Tests that an upload that a release has begun, and its client's sign-in, go on with today's programs.
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { grove } from "#e2e/processes.ts";
import { until } from "#testing/until.ts";
import { KEPT, PRESENT, released, run } from "./releases.ts";
import { type RollingCluster, startRollingCluster } from "./rolling-cluster.ts";

const BYTES = 200_000_000;

async function chunkFiles({ nodes }: RollingCluster): Promise<number> {
  const lists = await Promise.all(
    nodes.map(({ data }) => readdir(join(data, "chunks"), { recursive: true, withFileTypes: true })),
  );
  return lists.flat().filter((entry) => entry.isFile()).length;
}

for (const version of KEPT) {
  test(`an upload that a client of ${version} has begun goes on after the upgrade, without a sign-in, and audit logs are whole`, {
    timeout: 240_000,
  }, async (t) => {
    const old = released(version);
    const cluster = await startRollingCluster(t, old);
    const env = { GROVE_CONFIG_DIR: join(cluster.folder, "config") };
    const login = ["login", "--metaserver", cluster.metaserver.address, "--mock", "anna@example.com"];
    assert.equal((await run(old, login, { env })).code, 0);
    const source = join(cluster.folder, "large");
    await writeFile(source, Buffer.alloc(BYTES, "large "));
    const begun = old.start(["put", source, "/large"], { env });
    await until(async () => (await chunkFiles(cluster)) > 3, "the first chunks");
    begun.child.kill("SIGKILL");
    await begun.ended;

    for (const member of cluster.members) {
      await member.stop();
      await member.start(PRESENT);
    }
    const quota = await grove(["quota", "--json"], { env });
    assert.ok(/"staging_bytes": ?[1-9]/.test(quota.stdout), quota.stdout + quota.stderr);
    const put = await grove(["put", source, "/large"], { env });
    assert.equal(put.code, 0, put.stderr);
    assert.match(put.stderr, /going on at \d/);
    const back = join(cluster.folder, "back");
    assert.equal((await grove(["get", "/large", back], { env })).code, 0);
    assert.ok((await readFile(back)).equals(await readFile(source)));
    for (const { data } of cluster.nodes) {
      const verified = await grove(["audit", "verify", "-data", data]);
      assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    }
  });
}
