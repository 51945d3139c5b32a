// Which processes a server that a test started has started in its turn.
import { readFileSync } from "node:fs";

/** Ids of the processes that a process has started and that run. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}
