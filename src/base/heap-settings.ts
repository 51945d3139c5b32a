// Settings of the heap for programs through which whole files pass.
import { setFlagsFromString } from "node:v8";

/**
 * Has buffers outside the heap collected young. File content passes through short-lived ones, and by default every 64 MB of them start
 * a marking of the whole heap, which takes half of a busy server's time; counted together with the heap they are not. Call it after the
 * modules are loaded and before the heap grows: V8 takes no compiled code from its cache any more once its settings have changed.
 */
export function keepBuffersYoung(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}

/**
 * Has the heap grow by some 60 % at most between two collections, for programs that hold much and change it all the time: by default it
 * grows to several times what is in use where the machine has the memory.
 */
export function growHeapSlowly(): void {
  setFlagsFromString("--heap-growing-percent=60");
}
