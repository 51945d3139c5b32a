// Tells the parts of downloads that a process has left from those that one still fills.
import { lstatSync } from "node:fs";
import { PART_IDLE_MS } from "#client/terminal/limits.ts";
import { isProcessAlive, stateOfMarked } from "#os/process-alive.ts";

/** Parts of 0.1.0 have the number of a process alone. */
const NUMBER = /^\d{1,10}$/;

/**
 * True for a part that nobody fills any more, by the mark in its name: of this process's earlier commands, or of
 * a process that is gone. What other machines do is not known, so their parts are left when they rest for long.
 */
export function isLeft(path: string, owner: string): boolean {
  if (NUMBER.test(owner)) return Number(owner) === process.pid || !isProcessAlive(Number(owner));
  const state = stateOfMarked(owner);
  if (state === "elsewhere") return restsForLong(path);
  return state !== "lives";
}

function restsForLong(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && Date.now() - stats.mtimeMs > PART_IDLE_MS;
}
