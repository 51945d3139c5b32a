// Users by the thousand: found by name, sorted by use or name, quotas changed beside the list and put back with one click.
import { Button, SegmentedControl, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { UserRow } from "#webapi/user.ts";
import { useAddressSearch } from "../live/address-search.ts";
import { type QuotaChanged, setQuota, useUsers } from "../live/users.ts";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { BarKey } from "../parts/usage-legend.tsx";
import { UserPanel } from "../parts/user-panel.tsx";
import { quotaText, UserTable } from "../parts/user-table.tsx";
import { bytesText, countText } from "../words/number.ts";

/** The page at "/users"; search, order and the user beside the list stand in the address. */
export function Page(): ReactNode {
  const { search, set } = useAddressSearch();
  const q = search.get("q") ?? "";
  const sort = search.get("sort") === "name" ? "name" : "usage";
  const chosen = search.get("user");
  const list = useUsers({ q, sort });
  const [done, setDone] = useState<{ changed: QuotaChanged; before: UserRow }>();
  const notice = done === undefined ? null : <Done done={done} onUndone={() => setDone(undefined)} />;
  return (
    <>
      <h1>{list.users === undefined ? "Users" : countText(list.total, "user")}</h1>
      <div className="filter-bar">
        <TextInput
          aria-label="Search users"
          placeholder="Part of a name"
          type="search"
          value={q}
          onChange={(event) => set("q", event.currentTarget.value)}
        />
        <SegmentedControl
          aria-label="Sort by"
          value={sort}
          onChange={(value) => set("sort", value)}
          data={[
            { value: "usage", label: "Fullest first" },
            { value: "name", label: "By name" },
          ]}
        />
        <BarKey />
      </div>
      {chosen === null ? notice : null}
      {list.users === undefined ? (
        <Unread what="the users" error={list.error} />
      ) : list.users.length === 0 ? (
        <Nothing>
          {q === ""
            ? "Nobody has signed in yet. A user appears here after the first sign-in."
            : `No user has “${q}” in the name.`}
        </Nothing>
      ) : (
        <UserTable users={list.users} total={list.total} search={search} onEnd={list.more} />
      )}
      {list.hasMore ? (
        <p className="quiet" role="status">
          {list.isReadingMore
            ? "Reading more …"
            : `${(list.users?.length ?? 0).toLocaleString()} of ${list.total.toLocaleString()} read; scroll on for more.`}
        </p>
      ) : null}
      {chosen === null ? null : (
        <UserPanel
          key={chosen}
          username={chosen}
          onClose={() => set("user", null)}
          onChanged={(changed, before) => setDone({ changed, before })}
        >
          {notice}
        </UserPanel>
      )}
    </>
  );
}

function Done({
  done: { changed, before },
  onUndone,
}: {
  readonly done: { readonly changed: QuotaChanged; readonly before: UserRow };
  readonly onUndone: () => void;
}): ReactNode {
  const undo = useMutation({
    mutationFn: () =>
      setQuota(before.username, before.quota_source === "explicit" ? BigInt(before.quota_limit) : 0n),
    onSuccess: onUndone,
  });
  return (
    <p className="panel" role="status">
      {changed.username} now has {quotaText(changed)}, before {bytesText(changed.previous_limit)}.
      {changed.over_quota
        ? " That is below what is used: nothing was deleted, and nothing more can be written."
        : ""}{" "}
      <Button variant="default" size="compact-sm" onClick={() => undo.mutate()} loading={undo.isPending}>
        Undo
      </Button>
      {undo.error === null ? null : ` ${undo.error.message}`}
    </p>
  );
}
