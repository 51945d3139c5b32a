// Stands for node:crypto, with random bytes that a seed repeats.
import { simulation } from "#prove/simulation/scheduler.ts";

export * from "node:crypto";

/** Bytes of the current process. */
export function randomBytes(count: number): Buffer {
  return (simulation().current ?? simulation()).random.bytes(count);
}

/** A UUID of the current process. */
export function randomUUID(): string {
  const hex = randomBytes(16).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
