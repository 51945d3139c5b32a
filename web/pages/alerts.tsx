// Alerts: the open ones first, then what has been; the filter stands in the address.
import { Button, Menu, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { AlertRecord } from "#webapi/alert.ts";
import { useAddressSearch } from "../live/address-search.ts";
import { useAlertList } from "../live/alerts.ts";
import { call } from "../live/api.ts";
import { ALERTS_KEY, useCluster } from "../live/cluster.ts";
import { queryClient } from "../live/query-client.ts";
import { useIsOperator } from "../live/session.ts";
import { AlertTable } from "../parts/alert-table.tsx";
import { Failed, Nothing, Reading } from "../parts/page-state.tsx";
import { Silences } from "../parts/silences.tsx";
import { countText } from "../words/number.ts";

const SHOWN = 200;
const FILTERS = ["severity", "node_id", "type"] as const;

/** The page at "/alerts". */
export function Page(): ReactNode {
  const isOperator = useIsOperator();
  const { search, set } = useAddressSearch();
  const filters = new URLSearchParams({ limit: String(SHOWN) });
  for (const name of FILTERS) {
    const value = search.get(name);
    if (value !== null && value !== "") filters.set(name, value);
  }
  const open = useAlertList(new URLSearchParams([...filters, ["unresolved", "true"]]));
  const all = useAlertList(filters);
  const past = all.alerts?.filter((alert) => alert.resolved);
  return (
    <>
      <h1>
        {open.alerts === undefined
          ? "Alerts"
          : open.alerts.length === 0
            ? "No alert is open"
            : countText(open.alerts.length, "open alert")}
      </h1>
      <FilterBar search={search} set={set} />
      {open.alerts === undefined ? (
        open.error === null ? (
          <Reading what="the alerts" />
        ) : (
          <Failed what="The alerts" error={open.error} />
        )
      ) : open.alerts.length === 0 ? (
        <Nothing>
          Nothing is above its limit. What is raised appears here within one poll of five seconds.
        </Nothing>
      ) : (
        <OpenAlerts alerts={open.alerts} isOperator={isOperator} />
      )}
      {isOperator ? <Silences /> : null}
      <h2>What has been</h2>
      {past === undefined ? (
        <Reading what="past alerts" />
      ) : past.length === 0 ? (
        <Nothing>No past alert fits. They are kept for 30 days, the newest thousand of them.</Nothing>
      ) : (
        <AlertTable alerts={past} />
      )}
    </>
  );
}

function FilterBar({
  search,
  set,
}: {
  readonly search: URLSearchParams;
  readonly set: (name: string, value: string | null) => void;
}): ReactNode {
  const { cluster } = useCluster();
  const nodes = (cluster?.nodes ?? []).map(({ id, name }) => ({ value: id, label: name }));
  return (
    <div style={{ display: "flex", gap: 12, flexWrap: "wrap", margin: "12px 0" }}>
      <Select
        aria-label="Severity"
        placeholder="Any severity"
        clearable
        data={["critical", "warning", "info"]}
        value={search.get("severity")}
        onChange={(value) => set("severity", value)}
      />
      <Select
        aria-label="Node"
        placeholder="Any node"
        clearable
        searchable
        limit={50}
        data={nodes}
        value={search.get("node_id")}
        onChange={(value) => set("node_id", value)}
      />
      <TextInput
        aria-label="Type"
        placeholder="Type, as storage_warning"
        defaultValue={search.get("type") ?? ""}
        onBlur={(event) => set("type", event.currentTarget.value.trim())}
      />
    </div>
  );
}

function OpenAlerts({
  alerts,
  isOperator,
}: {
  readonly alerts: readonly AlertRecord[];
  readonly isOperator: boolean;
}): ReactNode {
  const act = useMutation({
    mutationFn: ({ path, body }: { path: string; body: unknown }) => call(path, { method: "POST", body }),
    onSuccess: () =>
      Promise.all([
        queryClient.invalidateQueries({ queryKey: ALERTS_KEY }),
        queryClient.invalidateQueries({ queryKey: ["silences"] }),
      ]),
  });
  if (!isOperator) return <AlertTable alerts={alerts} />;
  const ids = alerts.map(({ id }) => id);
  return (
    <>
      <AlertTable
        alerts={alerts}
        renderActions={(alert) => (
          <span style={{ display: "flex", gap: 8 }}>
            {alert.acked_by === undefined ? (
              <Button
                variant="default"
                size="compact-sm"
                aria-label={`Acknowledge ${alert.title}`}
                onClick={() => act.mutate({ path: "/api/alerts/ack", body: { id: alert.id } })}
              >
                Acknowledge
              </Button>
            ) : null}
            <Button
              variant="default"
              size="compact-sm"
              aria-label={`Resolve ${alert.title}`}
              onClick={() => act.mutate({ path: "/api/alerts/resolve", body: { id: alert.id } })}
            >
              Resolve
            </Button>
            <SilenceButton
              alert={alert}
              onChoose={(endsAt) =>
                act.mutate({
                  path: "/api/silences",
                  body: { matchers: matchersOf(alert), ends_at: endsAt, comment: alert.title },
                })
              }
            />
          </span>
        )}
      />
      {act.error === null ? null : <p role="alert">{act.error.message}</p>}
      {ids.length < 2 ? null : (
        <Button
          mt="sm"
          variant="default"
          size="xs"
          onClick={() => act.mutate({ path: "/api/alerts/resolve", body: { ids } })}
        >
          Resolve the {ids.length} shown
        </Button>
      )}
      <p className="quiet">
        What is resolved by hand is not raised again until its cause has been away once, or gets worse.
      </p>
    </>
  );
}

/** Silences alerts of this type, of this node and user where it has them. */
function matchersOf(alert: AlertRecord): { name: string; value: string; is_regex: false }[] {
  const wanted = { type: alert.type, node_id: alert.node_id, username: alert.username };
  return Object.entries(wanted).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, value, is_regex: false as const }],
  );
}

function SilenceButton({
  alert,
  onChoose,
}: {
  readonly alert: AlertRecord;
  /** Unix seconds. */
  readonly onChoose: (endsAt: number) => void;
}): ReactNode {
  const inHours = (hours: number): void => onChoose(Math.floor(Date.now() / 1_000) + hours * 3_600);
  const tomorrow = (): void => {
    const morning = new Date();
    morning.setDate(morning.getDate() + 1);
    morning.setHours(9, 0, 0, 0);
    onChoose(Math.floor(morning.getTime() / 1_000));
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="compact-sm" aria-label={`Silence ${alert.title}`}>
          Silence ▾
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => inHours(1)}>For 1 hour</Menu.Item>
        <Menu.Item onClick={() => inHours(4)}>For 4 hours</Menu.Item>
        <Menu.Item onClick={tomorrow}>Until tomorrow, 09:00</Menu.Item>
        <Menu.Item onClick={() => inHours(168)}>For a week</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
