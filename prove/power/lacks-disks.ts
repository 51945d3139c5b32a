// Says whether this machine can make disks whose power is cut.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const TOOLS = ["mount", "umount", "unshare", "mkfs.ext4", "mkfs.xfs", "perl"] as const;

/** What the machine lacks for disks of loop devices in a mount namespace of their own. */
export function lacksDisks(): string | undefined {
  if (process.getuid?.() !== 0) return "only root can mount";
  if (!existsSync("/dev/loop-control")) return "there are no loop devices";
  const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  const isThere = (tool: string): boolean =>
    path.split(":").some((folder) => existsSync(`${folder}/${tool}`));
  const missing = TOOLS.filter((tool) => !isThere(tool));
  if (missing.length > 0) return `${missing.join(", ")} not installed`;
  const { status } = spawnSync("unshare", ["-m", "--propagation", "private", "true"]);
  return status === 0 ? undefined : "mount namespaces are not allowed";
}
