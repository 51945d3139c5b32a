// Checks what people's programs keep with inodes: locks, links and properties.
import type { DatabaseSync } from "node:sqlite";
import type { Findings } from "./check-report.ts";

/** Finds, and with `repair` drops, locks, links and properties of inodes that do not exist. Needs an open transaction. */
export function checkKept(db: DatabaseSync, findings: Findings, repair: boolean): void {
  for (const [table, what] of [
    ["property", "properties"],
    ["lock", "locks"],
    ["link", "links"],
  ] as const) {
    const orphaned = `FROM ${table} WHERE NOT EXISTS (SELECT 1 FROM inode WHERE id = inode_id)`;
    const { count } = db.prepare(`SELECT count(*) AS count ${orphaned}`).get() as { count: number };
    if (count === 0) continue;
    if (repair) db.exec(`DELETE ${orphaned}`);
    findings.difference(`${count} ${what} belong to nothing`, repair);
  }
}
