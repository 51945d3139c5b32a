// The audit log of all nodes, newest first, and the state of each node's chain.
import { Button, Select, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode, useMemo } from "react";
import type { z } from "zod";
import type { AuditEntry, auditChains, auditList } from "#wire/webapi/audit.ts";
import { useAddressSearch } from "../live/address-search.ts";
import { call } from "../live/api.ts";
import { useNodeChoices } from "../live/cluster.ts";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { bytesText, countText } from "../words/number.ts";
import { formatMoment } from "../words/time.ts";

const FILTERS = ["act", "actor", "subject", "node"] as const;

/** The page at "/audit"; the filter is in the address. */
export function Page(): ReactNode {
  const { search, set } = useAddressSearch();
  const filters = new URLSearchParams({ limit: "100" });
  for (const name of FILTERS) {
    const value = search.get(name);
    if (value !== null && value !== "") filters.set(name, value);
  }
  const query = useInfiniteQuery({
    queryKey: ["audit", filters.toString()],
    queryFn: ({ pageParam, signal }) =>
      call<z.infer<typeof auditList>>(
        `/api/audit?${filters}${pageParam === "" ? "" : `&cursor=${encodeURIComponent(pageParam)}`}`,
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: (before) => before,
  });
  const entries = query.data?.pages.flatMap((page) => page.entries);
  return (
    <>
      <h1>Audit</h1>
      <Chains />
      <FilterBar search={search} set={set} />
      {entries === undefined ? (
        <Unread what="the audit log" error={query.error} />
      ) : entries.length === 0 ? (
        <Nothing>
          {query.hasNextPage
            ? "Nothing fits among the newest lines; look further back."
            : `${filters.size > 1 ? "Nothing fits" : "There is no line yet"}. Sign-ins, changed quotas, shares, permanent deletes and security events each leave a line here.`}
        </Nothing>
      ) : (
        <Entries entries={entries} />
      )}
      {query.hasNextPage ? (
        <Button
          mt="md"
          variant="default"
          onClick={() => void query.fetchNextPage()}
          loading={query.isFetchingNextPage}
        >
          Look further back
        </Button>
      ) : null}
    </>
  );
}

function Chains(): ReactNode {
  const { data } = useQuery({
    queryKey: ["audit-chains"],
    queryFn: ({ signal }) => call<z.infer<typeof auditChains>>("/api/audit/chains", { signal }),
  });
  if (data === undefined || data.chains.length === 0) return null;
  const broken = data.chains.filter(({ breaks }) => breaks > 0);
  const waiting = data.chains.filter(({ problem }) => problem !== undefined);
  return (
    <p>
      {broken.length === 0 ? (
        <StateMark
          state="online"
          label={`Every chain of lines holds (${countText(data.chains.length, "machine")}).`}
        />
      ) : (
        <StateMark
          state="critical"
          label={`The chain of ${broken.map(({ node }) => node).join(", ")} broke: lines were changed or are missing.`}
        />
      )}
      {waiting.length === 0
        ? null
        : waiting.map(({ node, problem }) => ` Nothing comes from ${node} at present: ${problem}`).join("")}
    </p>
  );
}

function FilterBar({
  search,
  set,
}: {
  readonly search: URLSearchParams;
  readonly set: (name: string, value: string | null) => void;
}): ReactNode {
  const nodes = useNodeChoices();
  const machines = useMemo(() => [{ value: "console", label: "console" }, ...(nodes ?? [])], [nodes]);
  return (
    <div className="filter-bar">
      {(["act", "actor", "subject"] as const).map((name) => (
        <TextInput
          key={name}
          aria-label={name}
          placeholder={name === "act" ? "Act, as quota.*" : name === "actor" ? "Who" : "To what"}
          defaultValue={search.get(name) ?? ""}
          onBlur={(event) => set(name, event.currentTarget.value.trim())}
          onKeyDown={(event) => {
            if (event.key === "Enter") set(name, event.currentTarget.value.trim());
          }}
        />
      ))}
      <Select
        aria-label="Machine"
        placeholder="Any machine"
        clearable
        searchable
        limit={50}
        data={machines}
        value={search.get("node")}
        onChange={(value) => set("node", value)}
      />
    </div>
  );
}

function Entries({ entries }: { readonly entries: readonly AuditEntry[] }): ReactNode {
  return (
    <div className="table-scroll">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">Did</th>
            <th scope="col">To what</th>
            <th scope="col">With</th>
            <th scope="col">On</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={`${entry.node} ${entry.seq} ${entry.broken ?? ""}`}>
              <td data-head="When" className="moment">
                {formatMoment(Date.parse(entry.time) / 1_000)}
              </td>
              <td data-head="Who" className="name">
                <Broken text={entry.actor} />
              </td>
              <td data-head="Did" className="no-wrap">
                {entry.act}
                {entry.broken === undefined ? null : (
                  <StateMark state="critical" label={`the chain broke here: ${entry.broken}`} />
                )}
              </td>
              <td data-head="To what" className="subject">
                <Broken text={entry.subject} />
              </td>
              <td data-head="With" className="quiet subject">
                {Object.entries(entry.detail ?? {})
                  .map(([name, value]) => detailText(name, value))
                  .join(", ")}
              </td>
              <td data-head="On" className="name">
                <span>
                  {entry.node} <span className="quiet roomy-only">#{entry.seq}</span>
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A long name with line breaks after its punctuation. */
function Broken({ text }: { readonly text: string }): ReactNode {
  return text.split(/(?<=[@./])/).map((part, index) => (
    <Fragment key={index}>
      {index === 0 ? null : <wbr />}
      {part}
    </Fragment>
  ));
}

/** Facts of a line as text: bytes with units, moments in the viewer's zone. */
function detailText(name: string, value: unknown): string {
  const text = String(value);
  if (name.endsWith("_bytes") && /^\d{1,20}$/.test(text)) {
    return `${name.slice(0, -"_bytes".length)} ${bytesText(text)}`;
  }
  const words = name.replaceAll("_", " ");
  return name.endsWith("_at") && typeof value === "number"
    ? `${words} ${formatMoment(value)}`
    : `${words} ${text}`;
}
