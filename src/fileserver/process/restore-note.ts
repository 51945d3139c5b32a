// Audits the restore of a data folder, so that holders of a longer copy of the log know why this one ends.
import { userInfo } from "node:os";
import type { Clock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import { restoreAct } from "#security/audit/restore-line.ts";

/** Writes the line after the backup's last one; resolves on stable storage. Throws STORAGE_FAILED. */
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

/** The account of this machine that runs the restore; its number when it has no name. */
function whoRuns(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
