// Ends the processes that a rig has started together with the rig's own, also on an interrupt.
import type { ChildProcess } from "node:child_process";

const ends = new Map<ChildProcess, () => void>();
process.on("exit", () => {
  for (const end of ends.values()) end();
});

/**
 * Kills a child when this process ends, a detached one with its whole process group. Returns a function that
 * kills it earlier.
 */
export function endsWithUs(child: ChildProcess, { isGroup = false } = {}): () => void {
  const end = (): void => {
    if (!isGroup) {
      child.kill("SIGKILL");
      return;
    }
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  };
  ends.set(child, end);
  child.once("close", () => ends.delete(child));
  return end;
}
