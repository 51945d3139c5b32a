// Whether a disk has room above its reserve: the pure rule of spec 4.6.3.

/** A disk at one moment, in bytes. */
export interface DiskRoom {
  /** Free space as the filesystem reports it to an unprivileged writer. */
  readonly freeBytes: bigint;
  /** Free space that must remain (spec 8: 20 GiB unless configured). */
  readonly reserveBytes: bigint;
  /** Promised to writes that have not reached the disk, so that two cannot both take the last bytes (D16). */
  readonly promisedBytes: bigint;
}

/** Bytes that a new write may take; 0 when free space is at or below the reserve (spec 4.6.3). */
export function usableBytes(disk: DiskRoom): bigint {
  const takenBytes = disk.reserveBytes + disk.promisedBytes;
  return disk.freeBytes > takenBytes ? disk.freeBytes - takenBytes : 0n;
}

/**
 * True when a write of writeBytes may go ahead. False when free space is at or below the reserve, even for an
 * empty write, and when the write is larger than the usable bytes (spec 4.6.3).
 */
export function leavesReserve(disk: DiskRoom, writeBytes: bigint): boolean {
  return disk.freeBytes > disk.reserveBytes && writeBytes <= usableBytes(disk);
}
