// The walk of a cluster from a release to the present one and back, process by process.
import assert from "node:assert/strict";
import { exec } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { groveOk } from "#e2e/certificate-cluster.ts";
import { commandToPutBack, schemaCopies } from "#os/schema-copy.ts";
import { PRESENT, type Release } from "./releases.ts";
import type { RollingCluster } from "./rolling-cluster.ts";

/** Replaces programs while clients work, and ends when they have done with the mixture what is asked of them. */
type Step = (replace: () => Promise<void>) => Promise<void>;

/** Replaces the program of each process by the present one. */
export async function upgrade(cluster: RollingCluster, step: Step): Promise<void> {
  for (const member of cluster.members) {
    await step(async () => {
      await member.stop();
      await member.start(PRESENT);
    });
  }
}

/** Takes everything back: the nodes first. The console is away while the store that it reads is put back. */
export async function goBack(cluster: RollingCluster, release: Release, step: Step): Promise<void> {
  const { nodes, meta, admin } = cluster;
  for (const node of nodes) {
    await step(async () => {
      await node.stop();
      await groveOk(["downgrade", "-data", node.data, "-to", release.version]);
      await node.start(release);
    });
  }
  await step(async () => {
    await admin.stop();
    await meta.stop();
    await putBack(join(meta.data, "metadata.db"));
    await meta.start(release);
    await admin.start(release);
  });
}

/** Puts the copy from before the upgrade into the place of the metadata store, as its refusal says. */
async function putBack(path: string): Promise<void> {
  const [copy] = schemaCopies(path);
  assert.ok(copy !== undefined);
  await promisify(exec)(commandToPutBack(path, copy.path));
}
