// Users as a table: the bar splits live bytes, trash and uploads under way; the level has a word too.
import { memo, type ReactNode, useEffect } from "react";
import { Link } from "wouter";
import { USAGE_LEVEL_PERCENT } from "#base/usage-level.ts";
import type { UserRow } from "#wire/webapi/user.ts";
import { useNowMs } from "../live/cluster.ts";
import { useHeldRows } from "../live/held-rows.ts";
import type { UserPages } from "../live/users.ts";
import { bytesText, percentText } from "../words/number.ts";
import { inodePercent, quotaText } from "../words/quota.ts";
import { fullness } from "../words/thresholds.ts";
import { formatAgo, formatDaysUntil } from "../words/time.ts";
import { HeldBox } from "./held-box.tsx";
import { SplitBar } from "./split-bar.tsx";
import { StateMark } from "./state-mark.tsx";
import { Spacer, useTableWindow } from "./table-window.tsx";

const LEVELS = {
  ok: { state: "online", label: "ok" },
  yellow: { state: "warning", label: `above ${USAGE_LEVEL_PERCENT.yellow} %` },
  red: { state: "critical", label: `above ${USAGE_LEVEL_PERCENT.red} %` },
} as const;

const idOf = ({ username }: UserRow): string => username;

/** A row for each user, linked to the user's panel; `onEnd` is called when the last row is visible. */
export function UserTable({
  users: current,
  total,
  search,
  isOfOneNode,
  onEnd,
}: {
  readonly users: readonly UserRow[];
  readonly total: number;
  /** The current query of the address, with the selected user. */
  readonly search: URLSearchParams;
  /** True hides the users' home node. */
  readonly isOfOneNode: boolean;
  readonly onEnd: () => void;
}): ReactNode {
  const held = useHeldRows(current, idOf);
  const users = held.rows;
  const { body, first, end, before, after, measure } = useTableWindow(users.length);
  const chosen = search.get("user");
  const others = new URLSearchParams([...search].filter(([name]) => name !== "user")).toString();
  const columns = isOfOneNode ? 5 : 6;
  const isAtEnd = end >= users.length;
  // Loads the next page shortly before the end of the visible rows.
  useEffect(() => {
    if (isAtEnd && users.length > 0) onEnd();
  }, [isAtEnd, users.length, onEnd]);
  return (
    <HeldBox held={held} className="table-scroll">
      <table className="table" aria-rowcount={total + 1}>
        <thead>
          <tr>
            <th scope="col">User</th>
            <th scope="col">Level</th>
            <th scope="col">Used</th>
            <th scope="col" className="number">
              Quota
            </th>
            {isOfOneNode ? null : (
              <th scope="col" className="beside-hidden roomy-only">
                Home
              </th>
            )}
            <th scope="col" className="beside-hidden roomy-only">
              Last active
            </th>
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer px={before} columns={columns} />
          {users.slice(first, end).map((user, index) => (
            <Row
              key={user.username}
              user={user}
              index={first + index}
              measure={measure}
              others={others}
              isOfOneNode={isOfOneNode}
              isChosen={user.username === chosen}
            />
          ))}
          <Spacer px={after} columns={columns} />
        </tbody>
      </table>
    </HeldBox>
  );
}

const Row = memo(function Row({
  user,
  index,
  measure,
  others,
  isOfOneNode,
  isChosen,
}: {
  readonly user: UserRow;
  readonly index: number;
  readonly measure: (row: Element | null) => void;
  readonly others: string;
  readonly isOfOneNode: boolean;
  readonly isChosen: boolean;
}): ReactNode {
  const now = useNowMs() / 1_000;
  const level = LEVELS[user.level];
  return (
    <tr
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      className={isChosen ? "is-chosen" : undefined}
    >
      <th scope="row">
        <Link
          className="row-link is-long"
          title={user.username}
          aria-current={isChosen ? "true" : undefined}
          href={`/users?${others === "" ? "" : `${others}&`}user=${encodeURIComponent(user.username)}`}
        >
          {user.username}
        </Link>
        {user.locked ? <LockedMark /> : null}
      </th>
      <td data-head="Level">
        <StateMark state={level.state} label={level.label} />
      </td>
      <td data-head="Used" className="no-wrap">
        <span>
          <SplitBar user={user} /> <span className="percent">{percentText(user.usage_percent)}</span>{" "}
          <span className="quiet">
            {bytesText(user.used_bytes)}
            <span className="beside-hidden spacious-only">
              {user.full_in_days === null ? "" : `, full ${formatDaysUntil(user.full_in_days)}`}
              {inodeNote(user)}
            </span>
          </span>
        </span>
      </td>
      <td data-head="Quota" className="number">
        {quotaText(user)}
      </td>
      {isOfOneNode ? null : (
        <td data-head="Home" className="no-wrap beside-hidden roomy-only">
          <Link
            className="row-link"
            title={user.home_node_name}
            href={`/nodes/${encodeURIComponent(user.home_node_id)}?tab=users`}
          >
            {user.home_node_name}
          </Link>
        </td>
      )}
      <td data-head="Last active" className="no-wrap beside-hidden roomy-only">
        {user.last_active === null ? "never" : formatAgo(user.last_active, now)}
      </td>
    </tr>
  );
});

/** Shape and words beside a name, as for states. */
function LockedMark(): ReactNode {
  return (
    <>
      {" "}
      <span className="locked-mark">
        <span aria-hidden="true">⊘</span> locked out
      </span>
    </>
  );
}

/** The note on the inode limit, from the quota's warning level on. */
function inodeNote(user: UserRow): string {
  const percent = inodePercent(user);
  return percent === null || fullness(percent) === "ok"
    ? ""
    : `, ${percentText(percent)} of the files and folders`;
}

/** Shows how much of a list is loaded while there is more; empty otherwise. */
export function MoreUsers({
  list: { users, total, hasMore, isReadingMore },
}: {
  readonly list: UserPages;
}): ReactNode {
  if (!hasMore) return null;
  return (
    <p className="quiet" role="status">
      {isReadingMore
        ? "Reading more …"
        : `${(users?.length ?? 0).toLocaleString()} of ${total.toLocaleString()} read; scroll on for more.`}
    </p>
  );
}
