// Users as a table: the bar splits live bytes, trash and uploads under way; the level is a word too.
import { Button } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import type { UserRow } from "#webapi/user.ts";
import { useNowMs } from "../live/cluster.ts";
import { bytesText, percentText } from "../words/number.ts";
import { formatAgo, formatDaysUntil } from "../words/time.ts";
import { StateMark } from "./state-mark.tsx";

const ROW_PX = 45;
const COLUMNS = 6;
const LEVELS = {
  ok: { state: "online", label: "ok" },
  yellow: { state: "warning", label: "above 80 %" },
  red: { state: "critical", label: "above 95 %" },
} as const;

/** A row for each user; `onEdit` opens the quota of one. */
export function UserTable({
  users,
  onEdit,
}: {
  readonly users: readonly UserRow[];
  readonly onEdit: (user: UserRow) => void;
}): ReactNode {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const rows = useWindowVirtualizer({
    count: users.length,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollMargin: top,
  });
  const shown = rows.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? -1;
  return (
    <div className="table-scroll">
      <table className="table" aria-rowcount={users.length + 1}>
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
          {first > 0 ? <Spacer rows={first} /> : null}
          {users.slice(first, last + 1).map((user, index) => (
            <Row key={user.username} user={user} rowIndex={first + index + 2} onEdit={onEdit} />
          ))}
          {users.length - 1 > last ? <Spacer rows={users.length - 1 - last} /> : null}
        </tbody>
      </table>
    </div>
  );
}

function Spacer({ rows }: { readonly rows: number }): ReactNode {
  return (
    <tr aria-hidden="true">
      <td colSpan={COLUMNS} style={{ height: rows * ROW_PX, padding: 0, border: 0 }} />
    </tr>
  );
}

function Row({
  user,
  rowIndex,
  onEdit,
}: {
  readonly user: UserRow;
  readonly rowIndex: number;
  readonly onEdit: (user: UserRow) => void;
}): ReactNode {
  const now = useNowMs() / 1_000;
  const level = LEVELS[user.level];
  return (
    <tr aria-rowindex={rowIndex}>
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
      <td data-head="Home">{user.home_node_name}</td>
      <td data-head="Last active" style={{ whiteSpace: "nowrap" }}>
        {user.last_active === null ? "never" : formatAgo(user.last_active, now)}
      </td>
    </tr>
  );
}

/** "16 GiB", with "default" beside what nobody has set, and "pending" while the home node has not reported. */
export function quotaText(user: Pick<UserRow, "quota_limit" | "quota_source">): string {
  const amount = bytesText(user.quota_limit);
  return user.quota_source === "explicit" ? amount : `${user.quota_source} (${amount})`;
}

function SplitBar({ user }: { readonly user: UserRow }): ReactNode {
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
