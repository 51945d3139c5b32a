// Ends what a rig has started together with the rig's own process, also when that is interrupted and has no time to wait.
import type { ChildProcess } from "node:child_process";

const ends = new Map<ChildProcess, () => void>();
process.on("exit", () => {
  for (const end of ends.values()) end();
});

/** Sees to a child's end by force, for a detached one to that of its whole process group; returns how to bring it about before. */
export function endsWithUs(child: ChildProcess, { isGroup = false } = {}): () => void {
  const end = (): void => {
    if (!isGroup) {
      child.kill("SIGKILL");
      return;
    }
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  ends.set(child, end);
  child.once("close", () => ends.delete(child));
  return end;
}
