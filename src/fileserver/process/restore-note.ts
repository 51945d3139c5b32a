// Writes into the audit log of a restored data folder that it was restored: whoever has gathered more of it then knows why it ends earlier.
import { userInfo } from "node:os";
import type { Clock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import { restoreAct } from "#security/audit/restore-line.ts";

/** Writes the line, behind the last one that the backup had; resolves when it is on stable storage. Throws STORAGE_FAILED. */
export async function noteRestore(
  dataFolder: string,
  from: { readonly backup: string; readonly takenAtMs: number },
  clock: Clock,
): Promise<void> {
  const log = await AuditLog.open({ dataFolder, clock, log: silentLogger });
  try {
    await log.flush();
    const { headSeq } = await log.read(0, 1);
    await log.write(restoreAct({ ...from, upTo: headSeq }, whoRuns()));
  } finally {
    await log.close();
  }
}

/** The account of this machine that restores; its number where it has no name. */
function whoRuns(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
