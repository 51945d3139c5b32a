// Heap settings for programs that pass whole files through memory.
import { setFlagsFromString } from "node:v8";

/**
 * Collects buffers outside the heap with the young generation. File content passes through short-lived
 * buffers. By default every 64 MB of them start a marking of the whole heap, which takes half of a busy
 * server's time. Call it after loading modules, since V8 then stops using its code cache, and before the heap
 * grows.
 */
export function keepBuffersYoung(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}

/**
 * Limits heap growth between two collections to about 60 %, for programs with large, changing state. By
 * default the heap grows to several times its live size where the machine has the memory.
 */
export function growHeapSlowly(): void {
  setFlagsFromString("--heap-growing-percent=60");
}
