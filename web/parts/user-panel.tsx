// One user beside the list: usage, quota editor and earlier changes.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { formatBytes } from "#base/bytes.ts";
import type { auditList } from "#wire/webapi/audit.ts";
import type { UserRow } from "#wire/webapi/user.ts";
import { call } from "../live/api.ts";
import { useCluster, useNowMs } from "../live/cluster.ts";
import { type QuotaChanged, useUser } from "../live/users.ts";
import { bytesText, countText, percentText } from "../words/number.ts";
import { inodesText, quotaText } from "../words/quota.ts";
import { formatAgo, formatDaysUntil, formatMoment } from "../words/time.ts";
import { type Fact, FactList } from "./fact-list.tsx";
import { InodeLimitEditor } from "./inode-limit-editor.tsx";
import { Failed, Nothing, Reading } from "./page-state.tsx";
import { QuotaEditor } from "./quota-editor.tsx";
import { SidePanel } from "./side-panel.tsx";
import { UsageLegend } from "./usage-legend.tsx";
import { UserLock } from "./user-lock.tsx";
import { UserTrash } from "./user-trash.tsx";

/** The panel of a user by name. */
export function UserPanel({
  username,
  onClose,
  onChanged,
  children,
}: {
  readonly username: string;
  readonly onClose: () => void;
  readonly onChanged: (changed: QuotaChanged, before: UserRow) => void;
  /** The result of a change, above the rest. */
  readonly children: ReactNode;
}): ReactNode {
  const { user, isRead, error } = useUser(username);
  return (
    <SidePanel title={username} onClose={onClose}>
      {children}
      {user !== undefined ? (
        <>
          <Facts user={user} />
          <h3>Quota</h3>
          <QuotaEditor user={user} onChanged={onChanged} />
          <InodeLimitEditor user={user} />
          <Changes username={username} />
          <UserTrash username={username} />
          <UserLock username={username} />
        </>
      ) : error !== null ? (
        <Failed what="This user" error={error} />
      ) : isRead ? (
        <Nothing>Nobody of this name has signed in.</Nothing>
      ) : (
        <Reading what="this user" />
      )}
    </SidePanel>
  );
}

function Facts({ user }: { readonly user: UserRow }): ReactNode {
  const now = useNowMs() / 1_000;
  const { cluster } = useCluster();
  const home = cluster?.nodes.find(({ id }) => id === user.home_node_id);
  const facts: readonly Fact[] = [
    [
      "Used",
      `${bytesText(user.used_bytes)} of ${quotaText(user)}, ${percentText(user.usage_percent)}${
        user.full_in_days === null ? "" : `; full ${formatDaysUntil(user.full_in_days)}`
      }`,
    ],
    ["Files", countText(user.file_count, "file")],
    [
      "Files and folders",
      user.inode_count === null ? "not known yet" : `${inodesText(user)}, trash included`,
    ],
    [
      "Home",
      <Link key="home" href={`/nodes/${encodeURIComponent(user.home_node_id)}?tab=users`}>
        {home?.name ?? user.home_node_name}
      </Link>,
    ],
    ["Last active", user.last_active === null ? "never" : formatAgo(user.last_active, now)],
  ];
  return (
    <>
      <UsageLegend user={user} />
      <FactList className="pairs" facts={facts} />
    </>
  );
}

/** Earlier changes of the quota, from the audit log. */
function Changes({ username }: { readonly username: string }): ReactNode {
  const search = new URLSearchParams({ act: "quota.set", subject: username, limit: "10" }).toString();
  const { data } = useQuery({
    queryKey: ["audit", "quota", username],
    queryFn: ({ signal }) => call<z.infer<typeof auditList>>(`/api/audit?${search}`, { signal }),
    // The console gathers all machines' lines every few seconds.
    refetchInterval: 5_000,
  });
  if (data === undefined) return null;
  // Console and node both log a change; the console's line has the operator.
  const changes = data.entries.filter(({ node }) => node === "console");
  return (
    <>
      <h3>Changes</h3>
      {changes.length === 0 ? (
        <p className="quiet">The quota was never changed from this console.</p>
      ) : (
        <ul className="plain-list">
          {changes.map((entry) => (
            <li key={entry.seq}>
              <span>
                {amountText(entry.detail?.["quota_bytes"])}
                {limitText(entry.detail?.["inode_limit"])}
                {outcomeText(entry.detail?.["outcome"])}
              </span>
              <span className="quiet">
                {formatMoment(Date.parse(entry.time) / 1_000)}, by {entry.actor}
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function amountText(bytes: unknown): string {
  const text = String(bytes);
  if (!/^\d+$/.test(text)) return "changed";
  return text === "0" ? "back to the default" : `set to ${formatBytes(BigInt(text))}`;
}

/** The requested inode limit beside the quota, if any. */
function limitText(inodes: unknown): string {
  const text = String(inodes);
  if (!/^\d{1,10}$/.test(text)) return "";
  return text === "0"
    ? ", files and folders back to the default"
    : `, at most ${Number(text).toLocaleString()} files and folders`;
}

/** The suffix of an amount that was not set as requested. */
function outcomeText(outcome: unknown): string {
  return typeof outcome !== "string" || outcome === "done" ? "" : ` (${outcome})`;
}
