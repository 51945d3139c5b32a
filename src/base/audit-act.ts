// Acts that the rooms report for the audit log (D24).

/** Kinds of audited acts. */
export type AuditActName =
  | "action.cancel"
  | "action.end"
  | "action.start"
  | "alert.ack"
  | "alert.resolve"
  | "app_password.create"
  | "app_password.revoke"
  | "audit.broken"
  | "audit.dropped"
  | "audit.gap"
  | "audit.restored"
  | "backup.restore"
  | "certificate.renew"
  | "door.refused"
  | "drain.begin"
  | "drain.confirm"
  | "drain.end"
  | "file.delete"
  | "group.change"
  | "group.create"
  | "group.delete"
  | "group.role"
  | "group.role_end"
  | "link.create"
  | "link.refused"
  | "link.revoke"
  | "lock.break"
  | "maintenance.begin"
  | "maintenance.end"
  | "move.confirm"
  | "move.undo"
  | "node.join"
  | "operator.close"
  | "operator.open"
  | "operator.password_changed"
  | "operator.refused"
  | "quota.set"
  | "rebalance.begin"
  | "rebalance.end"
  | "rollout.cancel"
  | "rollout.end"
  | "rollout.start"
  | "root.arrived"
  | "root.departed"
  | "root.replaced"
  | "root.returned"
  | "security"
  | "session.open"
  | "session.refused"
  | "share.add"
  | "share.remove"
  | "silence.add"
  | "silence.end"
  | "trash.add"
  | "trash.expire"
  | "trash.look"
  | "trash.purge"
  | "trash.restore"
  | "trash.space"
  | "user.disable"
  | "user.enable"
  | "user.end_sessions"
  | "user.gone"
  | "user.hand_over"
  | "user.hand_over_end"
  | "user.inherit"
  | "user.inherit_end"
  | "user.rebind"
  | "user.release"
  | "user.remove"
  | "user.rename"
  | "user.rename_confirm"
  | "user.rename_refuse"
  | "user.restore";

/** One act. Never holds a token, a hash or a password. */
export interface AuditAct {
  readonly act: AuditActName;
  /** Username of the actor; "node" for the node itself. */
  readonly actor: string;
  /** Object of the act: a username, or "owner:/path". */
  readonly subject: string;
  /** Id of the request that caused it, if one did. */
  readonly request?: string | undefined;
  /** Further plain values; undefined ones are left out. */
  readonly detail?: Readonly<Record<string, string | number | bigint | boolean | undefined>>;
}

/** Takes acts; must neither wait nor throw. */
export type AuditSink = (act: AuditAct) => void;
