// Alerts: open ones as cards, then the history; the filter is in the address.
import { Select } from "@mantine/core";
import type { ReactNode } from "react";
import { useAddressSearch } from "../live/address-search.ts";
import { useAlertList, useAlertSummary } from "../live/alerts.ts";
import { useIsOperator } from "../live/session.ts";
import { AlertCards } from "../parts/alert-cards.tsx";
import { AlertTable } from "../parts/alert-table.tsx";
import { NodeFilter } from "../parts/node-filter.tsx";
import { Nothing, Unread } from "../parts/page-state.tsx";
import { Silences } from "../parts/silences.tsx";
import { furtherAlerts, SEVERITY_ORDER, TYPE_LABELS } from "../words/alert.ts";
import { countText } from "../words/number.ts";

const SHOWN = 200;
const FILTERS = ["severity", "node_id", "type"] as const;

/** The page at "/alerts". */
export function Page(): ReactNode {
  const isOperator = useIsOperator();
  const further = furtherAlerts(useAlertSummary()?.for_operators);
  const { search, set } = useAddressSearch();
  const filters = new URLSearchParams({ limit: String(SHOWN) });
  for (const name of FILTERS) {
    const value = search.get(name);
    if (value !== null && value !== "") filters.set(name, value);
  }
  const isFiltered = filters.size > 1;
  const open = useAlertList(new URLSearchParams([...filters, ["unresolved", "true"]]));
  const past = useAlertList(new URLSearchParams([...filters, ["resolved", "true"]]));
  return (
    <>
      <h1>{open.alerts === undefined ? "Alerts" : titleOf(open.total, isFiltered, isOperator)}</h1>
      <FilterBar search={search} set={set} />
      {open.alerts === undefined ? (
        <Unread what="the alerts" error={open.error} />
      ) : open.alerts.length === 0 ? (
        <Nothing>
          {isFiltered
            ? "No open alert fits the filter. Clear it to see all."
            : "Nothing is above its limit. What is raised appears here within one poll of five seconds."}
        </Nothing>
      ) : (
        <AlertCards key={open.asked} alerts={open.alerts} total={open.total} isOperator={isOperator} />
      )}
      {further === undefined ? null : <p className="quiet">{further}.</p>}
      {isOperator ? <Silences /> : null}
      <h2>What has been</h2>
      {past.alerts === undefined ? (
        <Unread what="past alerts" error={past.error} />
      ) : past.alerts.length === 0 ? (
        <Nothing>
          {isFiltered ? "No past alert fits the filter." : "No alert has ended yet."} They are kept for 30
          days, the newest thousand of them.
        </Nothing>
      ) : (
        <AlertTable key={past.asked} alerts={past.alerts} />
      )}
    </>
  );
}

/** A filter may hide open alerts, and visitors do not see all. */
function titleOf(total: number, isFiltered: boolean, isOperator: boolean): string {
  if (total > 0) return countText(total, "open alert");
  if (isFiltered) return "No open alert fits";
  return isOperator ? "No alert is open" : "No alert about machines or the service is open";
}

function FilterBar({
  search,
  set,
}: {
  readonly search: URLSearchParams;
  readonly set: (name: string, value: string | null) => void;
}): ReactNode {
  return (
    <div className="filter-bar">
      <Select
        aria-label="Severity"
        placeholder="Any severity"
        clearable
        data={SEVERITY_ORDER}
        value={search.get("severity")}
        onChange={(value) => set("severity", value)}
      />
      <NodeFilter value={search.get("node_id")} onChange={(value) => set("node_id", value)} />
      <Select
        aria-label="Type"
        placeholder="Any type"
        clearable
        searchable
        data={Object.entries(TYPE_LABELS).map(([value, label]) => ({ value, label }))}
        value={search.get("type")}
        onChange={(value) => set("type", value)}
      />
    </div>
  );
}
