// CRC-32 (IEEE) by a compiled library where one is installed, else by Node's zlib.
import { createRequire } from "node:module";
import { crc32 as portableCrc32 } from "node:zlib";
import { isOneFile, loadEmbedded } from "./embedded-library.ts";

type Crc32 = (bytes: Uint8Array, crc?: number) => number;

/** Below this length the call itself costs most, and short commands need not load the library. */
const COMPILED_FROM_BYTES = 4_096;

let compiled: Crc32 | undefined;

/**
 * CRC-32 of bytes, continued from the checksum of the bytes before them (D15). Node's zlib uses no processor
 * instructions for it and takes seven times as long: a third of a transfer's work.
 */
export function crc32(bytes: Uint8Array, crc = 0): number {
  if (bytes.length < COMPILED_FROM_BYTES) return portableCrc32(bytes, crc);
  compiled ??= compiledCrc32() ?? portableCrc32;
  return compiled(bytes, crc);
}

/** Undefined where the machine has no build, or the installation left it out. */
function compiledCrc32(): Crc32 | undefined {
  try {
    const found = isOneFile() ? loadEmbedded("crc32") : createRequire(import.meta.url)("@node-rs/crc32");
    const library = found as { readonly crc32: Crc32 };
    // A wrong checksum would condemn good files, so the library must agree on a sample with every kind of
    // length.
    const sample = Buffer.alloc(COMPILED_FROM_BYTES + 63, 0xa5);
    for (const length of [0, 1, 63, 64, sample.length]) {
      const bytes = sample.subarray(0, length);
      if (library.crc32(bytes, length) !== portableCrc32(bytes, length)) return undefined;
    }
    return library.crc32;
  } catch {
    return undefined;
  }
}
