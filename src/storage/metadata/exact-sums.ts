// The bound of a root's bytes: below it every sum in a root is exact as a number (T17).
import { GroveError } from "#base/errors.ts";

/** Everything in a root that counts as used. */
interface RootBytes {
  readonly liveBytes: number;
  readonly propertyBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
}

/** Throws BAD_ARGUMENT where a root would come to 2^53 bytes with more of them. */
export function requireExact(root: RootBytes, moreBytes: number): void {
  const usedBytes = root.liveBytes + root.propertyBytes + root.trashBytes + root.stagingBytes;
  if (moreBytes > 0 && usedBytes + moreBytes > Number.MAX_SAFE_INTEGER) {
    throw new GroveError("BAD_ARGUMENT", "a root holds less than 2^53 bytes");
  }
}
