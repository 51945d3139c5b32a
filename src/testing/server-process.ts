// Lists the child processes of a server that a test started.
import { readFileSync } from "node:fs";

/** Ids of a process's running children. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}
