// The disk that fills first, a full disk, and one without inodes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { statfsSync, truncateSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { calm } from "./first-screen.ts";
import type { Job } from "./job.ts";
import type { FirstScreen } from "./site.ts";
import { makeFile } from "./tree.ts";

const MIB = 1_048_576;
/** The reserve of n3's small disk. */
export const SMALL_RESERVE_BYTES: number = 16 * MIB;

/** Mounts a small filesystem for n3; returns the reason where that fails. */
export async function mountSmallDisk(folder: string): Promise<string | undefined> {
  await mkdir(folder);
  const words = ["-t", "tmpfs", "-o", "size=128m,nr_inodes=2000,mode=700", "tmpfs", folder];
  const { status, stderr } = spawnSync("mount", words, { encoding: "utf8" });
  return status === 0 ? undefined : `a small filesystem cannot be mounted: ${stderr.trim()}`;
}

/** Undoes that. */
export function unmountSmallDisk(folder: string): void {
  spawnSync("umount", [folder]);
}

const n3 = ({ nodes }: FirstScreen): Readonly<Record<string, unknown>> =>
  nodes.find(({ id }) => id === "n3") ?? assert.fail("no n3");

/** A warning while there is room, critical where uploads are refused, resolved when there is room again. */
export const whichFillsFirst: Job = {
  title:
    "the disk that fills first is warned of before it is full, says that it refuses uploads, and users read why",
  async run(site) {
    const disk = join(site.folder, "small");
    const dave = site.person("dave");
    const large = await makeFile(join(site.folder, "files", "large"), 3 * MIB);
    const filler = join(disk, "filler");
    /** Fills the disk until so many bytes are left above the reserve; further bytes are a sparse hole. */
    const leave = async (bytes: number): Promise<void> => {
      const { bavail, bsize } = statfsSync(disk);
      const free = bavail * bsize;
      await writeFile(filler, Buffer.alloc(Math.max(0, free - SMALL_RESERVE_BYTES - bytes)));
    };
    const first = await site.firstScreen();
    assert.equal(n3(first)["disk_forecast_known"], false);
    assert.equal(n3(first)["disk_full_in_days"], undefined, "no day is named that nobody knows");
    await leave(5 * MIB);
    const warning = await site.alert("storage_reserve:n3", /left/);
    assert.equal(warning.severity, "warning");
    assert.match(warning.title, /^n3 has [\d.]+ MiB left for uploads$/);
    truncateSync(filler, 0);
    await leave(0);
    const refuses = await site.alert("storage_reserve:n3", /refuses uploads now/);
    assert.equal(refuses.severity, "critical");
    assert.match((await calm((await site.firstScreen()).nodes)).title, /refuse/);
    assert.match(
      await dave.refused(6, "put", large, "/large"),
      /fileserver storage limit reached: cannot write/,
    );
    assert.match(await dave.ok("ls"), /kept/, "reading goes on");
    await rm(filler);
    await site.noAlert("storage_reserve:n3");
    await dave.ok("put", large, "/large");
  },
};

/** The messages say inodes, for the operator and for the user. */
export const noInodes: Job = {
  title: "a filesystem without inodes is an alert that says inodes, and so does the refusal",
  async run(site) {
    const disk = join(site.folder, "small");
    const dave = site.person("dave");
    const large = join(site.folder, "files", "large");
    const filler = join(disk, "fillers");
    await mkdir(filler);
    for (let at = 0; statfsSync(disk).ffree > 0; at++) await writeFile(join(filler, `${at}`), "");
    // A poll may have come while they were taken.
    const alert = await site.alert("inodes_low:n3", /./, "critical");
    assert.equal(alert.title, "n3 runs out of inodes");
    assert.match(await dave.refused(6, "put", large, "/another"), /inodes/);
    await rm(filler, { recursive: true });
    await site.noAlert("inodes_low:n3");
    await dave.ok("put", large, "/another");
  },
};
