// Writes audit lines for items put into the trash and restored from it (D14, D24).
import type { AuditAct, AuditSink } from "#base/audit-act.ts";
import type { TrashedContent } from "#storage/contract/inode.ts";

/** The actor and the owner of the trash. */
export interface TrashAct {
  /** Username of the actor. */
  readonly actor: string;
  /** Username of the trash's owner. */
  readonly owner: string;
}

/** Audits an item put into the trash, and the shares that it ended. */
export function auditTrashed(audit: AuditSink, act: TrashAct, item: TrashedContent): void {
  audit(lineOf(act, item));
  auditEnded(audit, act, item);
}

/** Audits the item that a change put into the trash, if any, as something else took its place (D13). */
export function auditReplaced(
  audit: AuditSink,
  act: TrashAct,
  { kept }: { readonly kept?: TrashedContent | undefined },
): void {
  if (kept === undefined) return;
  const line = lineOf(act, kept);
  audit({ ...line, detail: { ...line.detail, replaced: true } });
  auditEnded(audit, act, kept);
}

function auditEnded(
  audit: AuditSink,
  { actor, owner }: TrashAct,
  { id, originalPath, formerShares }: TrashedContent,
): void {
  for (const { names, username } of formerShares) {
    const subject = `${owner}:${[originalPath, ...names].join("/")}`;
    audit({ act: "share.remove", actor, subject, detail: { user: username, trash_id: id } });
  }
}

function lineOf(
  { actor, owner }: TrashAct,
  { id, originalPath, sizeBytes, inodeCount }: TrashedContent,
): AuditAct {
  const detail = { trash_id: id, bytes: sizeBytes, inodes: inodeCount };
  return { act: "trash.add", actor, subject: `${owner}:${originalPath}`, detail };
}

/** Audits a restored item and its new place. */
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
