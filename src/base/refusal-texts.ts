// The texts of refusals that the specification fixes word by word (spec 7).

const GIB = 1_073_741_824n;

/** Refusal of a write above the quota. */
export const QUOTA_EXCEEDED_TEXT = "storage quota exceeded";

/** Refusal of SetQuota. */
export const NOT_ADMIN_TEXT = "permission denied: only cluster administrators can modify quotas";

/** What a refusal for the disk's reserve tells, in bytes. */
export interface ReserveNumbers {
  readonly writeBytes: bigint;
  readonly usableBytes: bigint;
  readonly reserveBytes: bigint;
}

/** Refusal of a write that the disk's reserve has no room for; a reserve other than 20 GiB prints its own amount. */
export function reserveText({ writeBytes, usableBytes, reserveBytes }: ReserveNumbers): string {
  return (
    `fileserver storage limit reached: cannot write ${writeBytes} bytes ` +
    `(usable free space: ${usableBytes} bytes, ${reserveAmount(reserveBytes)} reserved for system safety)`
  );
}

/** Whole GiB as "20 GiB", other amounts exact in bytes. */
function reserveAmount(reserveBytes: bigint): string {
  return reserveBytes > 0n && reserveBytes % GIB === 0n
    ? `${reserveBytes / GIB} GiB`
    : `${reserveBytes} bytes`;
}
