// The servers' memory, read ten times a second: its peak, and what went on while it rose beyond the bound.
import type { Campaign } from "#prove/campaign.ts";
import { footprintOf, type GroveProcess } from "#prove/grove-process.ts";

const MEMORY_MAX_MB = 400;
const MEMORY_EVERY_MS = 100;
/** What went before may have left memory that is not given back at once; whoever adds so much to it is to blame. */
const ADDED_MB = 20;

/** What was seen. */
export interface MemoryWatch {
  /** What a kind has made of a server, where that was too much. */
  tooMuchIn(kind: string): string | undefined;
  /** Tells the peak of all. */
  tell(): void;
}

/** Whether a server holds more than it may now. */
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
  const tooMuchMb = new Map<string, number>();
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
      tooMuchMb.set(kind, Math.max(memoryMb, tooMuchMb.get(kind) ?? 0));
    }
  }, MEMORY_EVERY_MS);
  campaign.atEnd(() => clearInterval(timer));
  return {
    tooMuchIn(which) {
      const memoryMb = tooMuchMb.get(which);
      return memoryMb === undefined ? undefined : `a server took ${Math.round(memoryMb)} MB`;
    },
    tell: () => campaign.figure("MB at most", Math.round(peakMb)),
  };
}

/** Of one that is about to end there may be nothing to read. */
function memoryOf({ pid }: GroveProcess): number {
  try {
    return footprintOf(pid).memoryMb;
  } catch {
    return 0;
  }
}
