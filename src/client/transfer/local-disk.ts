// Knows a disk of this machine again, whose device number may be another one after a restart or a remount.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Where udev lists file systems by their lasting ids. */
const BY_UUID = "/dev/disk/by-uuid";
/** Entries that are looked at. */
const DISKS_MAX = 1_000;
const UUID_PREFIX = "uuid-";

/**
 * Names the disk of a device number: by its file system's own id where the number is listed under one, else by the
 * number.
 */
export function diskOf(device: bigint, folder: string = BY_UUID): string {
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // Containers and other systems have no such list.
  }
  const uuid = names.slice(0, DISKS_MAX).find((name) => deviceAt(join(folder, name)) === device);
  return uuid === undefined ? `number-${device}` : UUID_PREFIX + uuid;
}

/** True for two names of which none can be another disk's: the same one, or one by a number that may have changed. */
export function mayBeSameDisk(one: string, other: string): boolean {
  return one === other || !one.startsWith(UUID_PREFIX) || !other.startsWith(UUID_PREFIX);
}

function deviceAt(path: string): bigint | undefined {
  try {
    return statSync(path, { bigint: true }).rdev;
  } catch {
    return undefined;
  }
}
