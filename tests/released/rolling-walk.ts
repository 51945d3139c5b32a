// The walk of a cluster from a release to the present one and back, process by process.
import assert from "node:assert/strict";
import { exec } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { groveOk } from "#e2e/certificate-cluster.ts";
import { commandToPutBack, schemaCopies } from "#os/schema-copy.ts";
import { PRESENT, type Release } from "./releases.ts";
import type { RollingCluster } from "./rolling-cluster.ts";

/** Waits until all clients have done with a mixture of releases what is asked of them. */
type Worked = () => Promise<void>;

/** Replaces the program of each process by the present one. */
export async function upgrade(cluster: RollingCluster, worked: Worked): Promise<void> {
  for (const member of cluster.members) {
    await member.stop();
    await member.start(PRESENT);
    await worked();
  }
}

/** Takes everything back: the nodes first. The console is away while the store that it reads is put back. */
export async function goBack(cluster: RollingCluster, release: Release, worked: Worked): Promise<void> {
  const { nodes, meta, admin } = cluster;
  for (const node of nodes) {
    await node.stop();
    await groveOk(["downgrade", "-data", node.data, "-to", release.version]);
    await node.start(release);
    await worked();
  }
  await admin.stop();
  await meta.stop();
  await putBack(join(meta.data, "metadata.db"));
  await meta.start(release);
  await admin.start(release);
  await worked();
}

/** Puts the copy from before the upgrade into the place of the metadata store, as its refusal says. */
async function putBack(path: string): Promise<void> {
  const [copy] = schemaCopies(path);
  assert.ok(copy !== undefined);
  await promisify(exec)(commandToPutBack(path, copy.path));
}
