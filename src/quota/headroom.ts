// Whether a quota leaves headroom: pure rules of spec 4.6.1 and 4.6.2, safe up to 2^64 - 1 and beyond.

/**
 * True when a root may get a file or directory: it is below its quota, even for an empty file (spec 4.6.1,
 * T2).
 */
export function mayCreate(quotaBytes: bigint, usedBytes: bigint): boolean {
  return usedBytes < quotaBytes;
}

/** Bytes that a quota still leaves; 0 when the root is at or over it (spec 4.6.2). */
export function headroomBytes(quotaBytes: bigint, usedBytes: bigint): bigint {
  // Compares before it subtracts: in 64 bits the difference of a root over its quota would wrap to almost
  // 2^64.
  return quotaBytes < usedBytes ? 0n : quotaBytes - usedBytes;
}

/**
 * True when a write of additionalBytes may go ahead: it may fill the quota to the last byte. A root over its
 * quota takes no write, not even an empty one (spec 4.6.2, T2).
 */
export function mayWrite(quotaBytes: bigint, usedBytes: bigint, additionalBytes: bigint): boolean {
  return quotaBytes >= usedBytes && additionalBytes <= headroomBytes(quotaBytes, usedBytes);
}
