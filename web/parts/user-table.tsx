// Users as a table: the bar splits live bytes, trash and uploads under way; the level is a word too.
import { Button } from "@mantine/core";
import { memo, type ReactNode, useEffect } from "react";
import { Link } from "wouter";
import type { UserRow } from "#webapi/user.ts";
import { useNowMs } from "../live/cluster.ts";
import { bytesText, percentText } from "../words/number.ts";
import { formatAgo, formatDaysUntil } from "../words/time.ts";
import { StateMark } from "./state-mark.tsx";
import { Spacer, useTableWindow } from "./table-window.tsx";

const COLUMNS = 6;
const LEVELS = {
  ok: { state: "online", label: "ok" },
  yellow: { state: "warning", label: "above 80 %" },
  red: { state: "critical", label: "above 95 %" },
} as const;

/** A row for each user; `onEdit` opens one, `onEnd` is called when the last of them comes into sight. */
export function UserTable({
  users,
  total,
  onEdit,
  onEnd,
}: {
  readonly users: readonly UserRow[];
  readonly total: number;
  readonly onEdit: (user: UserRow) => void;
  readonly onEnd: () => void;
}): ReactNode {
  const { body, first, end, before, after, measure } = useTableWindow(users.length);
  const isAtEnd = end >= users.length;
  // What is in sight is about to end: the next page comes without being asked for.
  useEffect(() => {
    if (isAtEnd && users.length > 0) onEnd();
  }, [isAtEnd, users.length, onEnd]);
  return (
    <div className="table-scroll">
      <table className="table" aria-rowcount={total + 1}>
        <thead>
          <tr>
            <th scope="col">User</th>
            <th scope="col">Level</th>
            <th scope="col">Used</th>
            <th scope="col" className="number">
              Quota
            </th>
            <th scope="col">Home</th>
            <th scope="col">Last active</th>
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer px={before} columns={COLUMNS} />
          {users.slice(first, end).map((user, index) => (
            <Row key={user.username} user={user} index={first + index} measure={measure} onEdit={onEdit} />
          ))}
          <Spacer px={after} columns={COLUMNS} />
        </tbody>
      </table>
    </div>
  );
}

const Row = memo(function Row({
  user,
  index,
  measure,
  onEdit,
}: {
  readonly user: UserRow;
  readonly index: number;
  readonly measure: (row: Element | null) => void;
  readonly onEdit: (user: UserRow) => void;
}): ReactNode {
  const now = useNowMs() / 1_000;
  const level = LEVELS[user.level];
  return (
    <tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      <th scope="row" style={{ fontSize: 14, color: "inherit", fontWeight: 500 }}>
        {user.username}
      </th>
      <td data-head="Level">
        <StateMark state={level.state} label={level.label} />
      </td>
      <td data-head="Used" style={{ whiteSpace: "nowrap" }}>
        <SplitBar user={user} /> {percentText(user.usage_percent)}{" "}
        <span className="quiet">
          {bytesText(user.used_bytes)}
          {user.full_in_days === null ? "" : `, full ${formatDaysUntil(user.full_in_days)}`}
        </span>
      </td>
      <td data-head="Quota" className="number">
        {quotaText(user)}{" "}
        <Button
          variant="default"
          size="compact-xs"
          aria-label={`Change the quota of ${user.username}`}
          onClick={() => onEdit(user)}
          disabled={user.quota_source === "pending"}
        >
          Change
        </Button>
      </td>
      <td data-head="Home">
        <Link href={`/nodes/${encodeURIComponent(user.home_node_id)}?tab=users`}>{user.home_node_name}</Link>
      </td>
      <td data-head="Last active" style={{ whiteSpace: "nowrap" }}>
        {user.last_active === null ? "never" : formatAgo(user.last_active, now)}
      </td>
    </tr>
  );
});

/** "16 GiB", with "default" beside what nobody has set, and "pending" while the home node has not reported. */
export function quotaText(user: Pick<UserRow, "quota_limit" | "quota_source">): string {
  const amount = bytesText(user.quota_limit);
  return user.quota_source === "explicit" ? amount : `${user.quota_source} (${amount})`;
}

/** How much of the quota is live, in trash and on the way up; the words beside it say the same. */
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
