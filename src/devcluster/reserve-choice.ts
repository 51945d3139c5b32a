// Chooses the demonstration's reserve: the specified 20 GiB, or less on a small disk (spec 4.6.3).
import { DISK_RESERVE_BYTES } from "#base/limits.ts";

/** Room above the reserve that a demonstration needs. */
export const DEMO_ROOM_BYTES: bigint = 4n << 30n;

/** The reserve of the demonstration's FileServers. */
export interface ReserveChoice {
  readonly reserveBytes: bigint;
  /** True when it is below the specified one because the disk is small, which requires a warning. */
  readonly isLowered: boolean;
}

/**
 * Keeps an explicit request, else the specified reserve; a disk without 4 GiB above that gets a quarter of
 * its free space as reserve. Only the demonstration does this: a FileServer never lowers its reserve by
 * itself.
 */
export function chooseReserve(freeBytes: bigint, wantedBytes: bigint | undefined): ReserveChoice {
  if (wantedBytes !== undefined) return { reserveBytes: wantedBytes, isLowered: false };
  if (freeBytes >= DISK_RESERVE_BYTES + DEMO_ROOM_BYTES) {
    return { reserveBytes: DISK_RESERVE_BYTES, isLowered: false };
  }
  const quarter = freeBytes / 4n;
  return { reserveBytes: quarter < DISK_RESERVE_BYTES ? quarter : DISK_RESERVE_BYTES, isLowered: true };
}
