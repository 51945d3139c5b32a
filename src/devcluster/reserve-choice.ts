// How much disk the demonstration keeps free: the specified 20 GiB, or less where nothing would be left to show (spec 4.6.3).
import { DISK_RESERVE_BYTES } from "#base/limits.ts";

/** Above the reserve a demonstration needs this much to show anything. */
export const DEMO_ROOM_BYTES: bigint = 4n << 30n;

/** The reserve that the FileServers of the demonstration are told. */
export interface ReserveChoice {
  readonly reserveBytes: bigint;
  /** True when it is less than specified because the disk is small, which has to be said loudly. */
  readonly isLowered: boolean;
}

/**
 * Keeps an explicit request and otherwise the specified reserve; a disk without 4 GiB above that gets a quarter of its free space as
 * reserve. Only the demonstration does this: a FileServer never lowers its reserve by itself.
 */
export function chooseReserve(freeBytes: bigint, wantedBytes: bigint | undefined): ReserveChoice {
  if (wantedBytes !== undefined) return { reserveBytes: wantedBytes, isLowered: false };
  if (freeBytes >= DISK_RESERVE_BYTES + DEMO_ROOM_BYTES) {
    return { reserveBytes: DISK_RESERVE_BYTES, isLowered: false };
  }
  const quarter = freeBytes / 4n;
  return { reserveBytes: quarter < DISK_RESERVE_BYTES ? quarter : DISK_RESERVE_BYTES, isLowered: true };
}
