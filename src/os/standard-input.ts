// Standard input, whatever it is.
import { createReadStream, fstatSync } from "node:fs";

const DESCRIPTOR = 0;

/**
 * Standard input. Node takes a folder and a block device for empty input, without a word: these are read, so that
 * the bytes of the device come, and for a folder the system's error.
 */
export function standardInput(): NodeJS.ReadStream {
  const stats = fstatSync(DESCRIPTOR);
  if (!stats.isDirectory() && !stats.isBlockDevice()) return process.stdin;
  return createReadStream("", { fd: DESCRIPTOR, autoClose: false }) as unknown as NodeJS.ReadStream;
}
