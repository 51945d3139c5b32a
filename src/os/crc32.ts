// CRC-32 (IEEE) at the speed of the processor where a compiled library can be had, and Node's own where not.
import { createRequire } from "node:module";
import { crc32 as portableCrc32 } from "node:zlib";

type Crc32 = (bytes: Uint8Array, crc?: number) => number;

/** Below this the call itself is what costs, and a command that only looks need not load the library. */
const COMPILED_FROM_BYTES = 4_096;

let compiled: Crc32 | undefined;

/**
 * CRC-32 of bytes, going on from the checksum of what came before them (D15). Node's own is compiled without the processor's
 * instructions for it and takes seven times as long, which was a third of all the work of a transfer.
 */
export function crc32(bytes: Uint8Array, crc = 0): number {
  if (bytes.length < COMPILED_FROM_BYTES) return portableCrc32(bytes, crc);
  compiled ??= compiledCrc32() ?? portableCrc32;
  return compiled(bytes, crc);
}

/** Undefined where no build exists for the machine, or it was left out of the installation. */
function compiledCrc32(): Crc32 | undefined {
  try {
    const library = createRequire(import.meta.url)("@node-rs/crc32") as { readonly crc32: Crc32 };
    // A wrong checksum would condemn good files: trust nothing that does not agree on one of every kind of length.
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
