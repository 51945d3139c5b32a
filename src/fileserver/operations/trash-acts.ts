// What the audit log is told of the trash: who put what there, and who brought it back (D14, D24).
import type { AuditAct, AuditSink } from "#base/audit-act.ts";
import type { KeptItem } from "#storage/contract/inode.ts";

/** Whose act on whose trash. */
export interface TrashAct {
  /** Username of whoever did it. */
  readonly actor: string;
  /** Username of whose trash it is. */
  readonly owner: string;
}

/** Tells that an item was put into the trash. */
export function auditTrashed(audit: AuditSink, act: TrashAct, item: KeptItem): void {
  audit(lineOf(act, item));
}

/** Tells what a change has put there, if anything: it had to make room for what somebody other than the owner wrote (D13). */
export function auditKept(
  audit: AuditSink,
  act: TrashAct,
  { kept }: { readonly kept?: KeptItem | undefined },
): void {
  if (kept === undefined) return;
  const line = lineOf(act, kept);
  audit({ ...line, detail: { ...line.detail, replaced: true } });
}

function lineOf({ actor, owner }: TrashAct, { id, originalPath, sizeBytes, inodeCount }: KeptItem): AuditAct {
  const detail = { trash_id: id, bytes: sizeBytes, inodes: inodeCount };
  return { act: "trash.add", actor, subject: `${owner}:${originalPath}`, detail };
}

/** Tells that an item came back, and where it is now. */
export function auditRestored(
  audit: AuditSink,
  { actor, owner }: TrashAct,
  { trashId, path, reason }: { readonly trashId: string; readonly path: string; readonly reason?: string },
): void {
  audit({
    act: "trash.restore",
    actor,
    subject: `${owner}:${path}`,
    detail: { trash_id: trashId, ...(reason === undefined ? {} : { reason }) },
  });
}
