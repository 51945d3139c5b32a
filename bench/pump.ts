// Bytes in and out of a stream as fast as backpressure allows, for programs that measure only a stream.
import type { Readable, Writable } from "node:stream";

/** Bytes of one write: large enough to be cheap, small enough that a slow reader holds little. */
const PIECE_BYTES = 262_144;

const piece = Buffer.alloc(PIECE_BYTES, 0xa5);

/** Writes `bytes` bytes and ends the stream; resolves when the last of them has been handed over. */
export function pump(stream: Writable, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = bytes;
    const go = (): void => {
      while (left > piece.length) {
        left -= piece.length;
        if (!stream.write(piece)) {
          stream.once("drain", go);
          return;
        }
      }
      stream.end(piece.subarray(0, left), resolve);
    };
    stream.once("error", reject);
    go();
  });
}

/** Counts the bytes of a stream to its end. */
export function count(stream: Readable): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    stream.on("data", (slice: Buffer) => {
      bytes += slice.length;
    });
    stream.once("end", () => resolve(bytes));
    stream.once("error", reject);
  });
}

/** Runs `calls` calls, `inFlight` at a time, and returns the rate per second. */
export async function callsPerSecond(
  calls: number,
  inFlight: number,
  call: (at: number) => Promise<unknown>,
): Promise<number> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < calls) {
      const at = next;
      next += 1;
      await call(at);
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: inFlight }, lane));
  return perSecond(calls, start);
}

/** The rate per second of an amount that took from `start` (performance.now()) until now. */
export function perSecond(amount: number, start: number): number {
  return amount / ((performance.now() - start) / 1_000);
}

/** MiB per second for `bytes` that took from `start` (performance.now()) until now. */
export function mibPerSecond(bytes: number, start: number): number {
  return perSecond(bytes / 1_048_576, start);
}
