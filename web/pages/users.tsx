// Thousands of users: search, order, quotas changed beside the list and undone with one click.
import { Button, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { UserRow } from "#wire/webapi/user.ts";
import { useAddressSearch } from "../live/address-search.ts";
import { type QuotaChanged, setQuota, useUsers } from "../live/users.ts";
import { NewAddresses } from "../parts/new-addresses.tsx";
import { NodeFilter } from "../parts/node-filter.tsx";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { BarKey } from "../parts/usage-legend.tsx";
import { UserPanel } from "../parts/user-panel.tsx";
import { MoreUsers, UserTable } from "../parts/user-table.tsx";
import { bytesText, countText } from "../words/number.ts";
import { quotaText, quotaToUndo } from "../words/quota.ts";

/** The page at "/users"; search, node, order and selected user are in the address. */
export function Page(): ReactNode {
  const { search, set } = useAddressSearch();
  const q = search.get("q") ?? "";
  const sort = orderOf(search);
  const node = search.get("node") ?? "";
  const isLockedAlone = search.get("locked") === "true";
  const chosen = search.get("user");
  const list = useUsers({ q, sort, node, isLockedAlone });
  const [done, setDone] = useState<{ changed: QuotaChanged; before: UserRow }>();
  const notice = done === undefined ? null : <Done done={done} onUndone={() => setDone(undefined)} />;
  return (
    <>
      <h1>{list.users === undefined ? "Users" : countText(list.total, "user")}</h1>
      <NewAddresses />
      <FilterBar search={search} set={set} />
      {chosen === null ? notice : null}
      {list.users === undefined ? (
        <Unread what="the users" error={list.error} />
      ) : list.users.length === 0 ? (
        <Nothing>
          {isLockedAlone
            ? `Nobody${q === "" && node === "" ? "" : " who fits"} is locked out. A user is locked out in their panel.`
            : q !== ""
              ? `No user${node === "" ? "" : " of this node"} has “${q}” in the name.`
              : node !== ""
                ? "No user lives on this node."
                : "Nobody has signed in yet. A user appears here after the first sign-in."}
        </Nothing>
      ) : (
        <UserTable
          key={list.asked}
          users={list.users}
          total={list.total}
          search={search}
          isOfOneNode={false}
          onEnd={list.more}
        />
      )}
      <MoreUsers list={list} />
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

function FilterBar({ search, set }: ReturnType<typeof useAddressSearch>): ReactNode {
  return (
    <div className="filter-bar">
      <TextInput
        aria-label="Search users"
        placeholder="Part of a name"
        type="search"
        value={search.get("q") ?? ""}
        onChange={(event) => set("q", event.currentTarget.value)}
      />
      <NodeFilter value={search.get("node")} onChange={(value) => set("node", value)} />
      <Select
        aria-label="Access"
        placeholder="Any access"
        clearable
        data={[{ value: "true", label: "Locked out" }]}
        value={search.get("locked")}
        onChange={(value) => set("locked", value)}
      />
      <SegmentedControl
        aria-label="Sort by"
        value={orderOf(search)}
        onChange={(value) => set("sort", value)}
        data={[
          { value: "usage", label: "Fullest first" },
          { value: "name", label: "By name" },
        ]}
      />
      <BarKey />
    </div>
  );
}

function orderOf(search: URLSearchParams): "usage" | "name" {
  return search.get("sort") === "name" ? "name" : "usage";
}

function Done({
  done: { changed, before },
  onUndone,
}: {
  readonly done: { readonly changed: QuotaChanged; readonly before: UserRow };
  readonly onUndone: () => void;
}): ReactNode {
  const undo = useMutation({
    mutationFn: () => setQuota(before.username, quotaToUndo(changed.previous_limit, before)),
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
