// Files, trash and uploads under way in a quota, as parts of one bar.
import type { ReactNode } from "react";
import type { UserRow } from "#wire/webapi/user.ts";

/** Hidden from screen readers, since the words beside it say the same. */
export function SplitBar({ user }: { readonly user: UserRow }): ReactNode {
  const quota = Number(user.quota_limit);
  const share = (bytes: number | string): string =>
    `${quota === 0 ? 0 : Math.min(100, (Number(bytes) / quota) * 100)}%`;
  return (
    <span className="bar" aria-hidden="true">
      <span style={{ width: share(user.live_bytes), background: "var(--grove-accent)" }} />
      <span style={{ width: share(user.trash_bytes), background: "var(--grove-quiet)" }} />
      <span style={{ width: share(user.staging_bytes), background: "var(--grove-warning)" }} />
    </span>
  );
}
