// Reads the servers' memory ten times a second: its peak, and the attack that raised it above the bound.
import type { Campaign } from "#prove/campaign.ts";
import { type GroveProcess, memoryMbOf } from "#prove/grove-process.ts";

const MEMORY_MAX_MB = 400;
const MEMORY_EVERY_MS = 100;
/** Memory of earlier attacks may not be given back at once; an attack that adds this much is to blame. */
const ADDED_MB = 20;

/** Readings of the servers' memory. */
export interface MemoryWatch {
  /** Says what an attack has made of a server's memory, if that was too much. */
  tooMuchIn(kind: string): string | undefined;
  /** Reports the peak of all. */
  tell(): void;
}

/** True when a server holds more than it may. */
export const holdsTooMuch = (process: GroveProcess): boolean => memoryOf(process) > MEMORY_MAX_MB;

/** Watches from now until the campaign's end. */
export function watchMemory(
  campaign: Campaign,
  kindNow: () => string,
  processes: () => readonly GroveProcess[],
): MemoryWatch {
  let peakMb = 0;
  let kind = "";
  const foundMb = new Map<number, number>();
  /** By kind. */
  const tooMuch = new Map<string, { readonly name: string; readonly memoryMb: number }>();
  const timer = setInterval(() => {
    if (kindNow() !== kind) foundMb.clear();
    kind = kindNow();
    for (const process of processes()) {
      if (!process.isRunning()) continue;
      const memoryMb = memoryOf(process);
      peakMb = Math.max(peakMb, memoryMb);
      const before = foundMb.get(process.pid) ?? memoryMb;
      foundMb.set(process.pid, Math.min(before, memoryMb));
      if (memoryMb <= MEMORY_MAX_MB || (before > MEMORY_MAX_MB && memoryMb < before + ADDED_MB)) continue;
      if (memoryMb > (tooMuch.get(kind)?.memoryMb ?? 0)) tooMuch.set(kind, { name: process.name, memoryMb });
    }
  }, MEMORY_EVERY_MS);
  campaign.atEnd(() => clearInterval(timer));
  return {
    tooMuchIn(which) {
      const found = tooMuch.get(which);
      return found === undefined ? undefined : `a ${found.name} took ${Math.round(found.memoryMb)} MB`;
    },
    tell: () => campaign.figure("MB at most", Math.round(peakMb)),
  };
}

/** A process that is about to end may have nothing to read. */
function memoryOf({ pid }: GroveProcess): number {
  try {
    return memoryMbOf(pid);
  } catch {
    return 0;
  }
}
