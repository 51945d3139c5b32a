// The installation: versions of the console and of all nodes, and settings to correct.
import { Button } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { z } from "zod";
import type { OperatorSessionRow, versionReply } from "#wire/webapi/auth.ts";
import type { noticesReply } from "#wire/webapi/notification.ts";
import type { SettingsReply } from "#wire/webapi/settings.ts";
import { call } from "../live/api.ts";
import { useCluster, useNowMs } from "../live/cluster.ts";
import { signOutEverywhere, useSession } from "../live/session.ts";
import { FactList } from "../parts/fact-list.tsx";
import { Unread } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import type { LiveNode } from "../words/live-node.ts";
import { isUnusualReserve, reserveText } from "../words/node-state.ts";
import { countText } from "../words/number.ts";
import { formatAgo, formatMoment } from "../words/time.ts";

/** The page at "/settings". */
export function Page(): ReactNode {
  const session = useSession();
  const { cluster } = useCluster();
  const version = useQuery({
    queryKey: ["version"],
    queryFn: ({ signal }) => call<z.infer<typeof versionReply>>("/api/version", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  }).data;
  const nodes = cluster?.nodes ?? [];
  const unusual = nodes.filter((node) => isUnusualReserve(node.reserve_bytes));
  const byVersion = Map.groupBy(nodes, (node) => node.version || "unknown");
  return (
    <>
      <h1>Settings</h1>
      <FactList
        facts={[
          [
            "Console",
            version === undefined
              ? "…"
              : `${version.version}${version.git_commit === null ? "" : ` (${version.git_commit.slice(0, 12)})`}`,
          ],
          ["Interface", `version ${version?.api ?? "…"}`],
          [
            "Operator password",
            session?.default_password === true
              ? "the built-in one: set your own with grove admin hash-password"
              : "your own",
          ],
          ["Disk reserve", reserveOf(unusual, nodes.length)],
        ]}
      />
      <Store />
      <MetaServers />
      <Sessions />
      <Notices />
      <h2>Versions of the nodes</h2>
      {byVersion.size > 1 ? (
        <p>Several versions run at once, as during a rollout. Each works with its neighbour.</p>
      ) : null}
      {byVersion.size === 0 ? (
        <p className="quiet">No FileServer has registered yet.</p>
      ) : (
        <table className="table" style={{ maxWidth: 640 }}>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Nodes</th>
            </tr>
          </thead>
          <tbody>
            {[...byVersion].map(([name, nodes]) => (
              <tr key={name}>
                <td>{name}</td>
                <td>
                  {countText(nodes.length, "node")}:{" "}
                  {nodes
                    .slice(0, 8)
                    .map((node) => node.name)
                    .join(", ")}
                  {nodes.length > 8 ? " …" : ""}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

/** The nodes' reserve; names a few nodes with an unusual one. */
function reserveOf(unusual: readonly LiveNode[], count: number): string {
  if (count === 0) return "…";
  if (unusual.length === 0) return "20 GiB on every node that has said so";
  const named = unusual
    .slice(0, 4)
    .map((node) => `${node.name} keeps free ${reserveText(node.reserve_bytes)}`);
  return `${named.join("; ")}${unusual.length > 4 ? `; ${unusual.length - 4} more` : ""}`;
}

function useSettings(): { readonly data: SettingsReply | undefined; readonly error: Error | null } {
  return useQuery({
    queryKey: ["settings"],
    queryFn: ({ signal }) => call<SettingsReply>("/api/settings", { signal }),
    refetchInterval: 10_000,
  });
}

/** The metadata store of the console. */
function Store(): ReactNode {
  const now = useNowMs() / 1_000;
  const { data, error } = useSettings();
  const store = data?.store;
  return (
    <>
      <h2>Metadata store</h2>
      {store === undefined ? (
        <Unread what="the store" error={error} />
      ) : (
        <p>
          <StateMark {...STORE_STATES[store.state]} /> {store.kind === "postgres" ? "PostgreSQL" : "SQLite"}
          {store.place === null ? "" : ` at ${store.place}`}
          {store.read_at === null ? ", not read yet" : `, last read ${formatAgo(store.read_at, now)}`}.
          {store.state === "failing"
            ? " What is shown of nodes and users is from then; the MetaServer cannot use it either."
            : ""}
        </p>
      )}
    </>
  );
}

/** The watched MetaServers and their state. */
function MetaServers(): ReactNode {
  const now = useNowMs() / 1_000;
  const { data, error } = useSettings();
  return (
    <>
      <h2>MetaServers</h2>
      {data === undefined ? (
        <Unread what="the MetaServers" error={error} />
      ) : data.metaservers.length === 0 ? (
        <p>
          None is watched: one that is away raises no alert. Name them with{" "}
          <code>-metaserver HOST:PORT,…</code>.
        </p>
      ) : (
        <ul className="plain-list">
          {data.metaservers.map(({ address, state, last_seen: lastSeen, reason }) => (
            <li key={address}>
              <StateMark {...METASERVER_STATES[state]} />
              <span>
                {address}
                {lastSeen === null ? ", no answer yet" : `, last answer ${formatAgo(lastSeen, now)}`}
                {reason === undefined ? "" : `: ${reason}`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const METASERVER_STATES = {
  answering: { state: "online", label: "answers" },
  late: { state: "unknown", label: "late" },
  offline: { state: "offline", label: "does not answer" },
} as const;

const STORE_STATES = {
  answering: { state: "online", label: "answers" },
  unread: { state: "info", label: "not asked yet" },
  failing: { state: "critical", label: "does not answer" },
} as const;

/** The operators' sessions, and a button that ends all. */
function Sessions(): ReactNode {
  const { data, error } = useQuery({
    queryKey: ["operator-sessions"],
    queryFn: ({ signal }) => call<{ sessions: OperatorSessionRow[] }>("/api/auth/sessions", { signal }),
    refetchInterval: 30_000,
  });
  const out = useMutation({ mutationFn: signOutEverywhere });
  return (
    <>
      <h2 id="sessions">Sessions</h2>
      {data === undefined ? (
        <Unread what="the sessions" error={error} />
      ) : (
        <>
          <div className="table-scroll narrow-table">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Session</th>
                  <th scope="col">From</th>
                  <th scope="col">Signed in</th>
                  <th scope="col">Ends</th>
                </tr>
              </thead>
              <tbody>
                {data.sessions.map((row) => (
                  <tr key={row.id}>
                    <th scope="row">
                      {row.id} {row.is_own ? <span className="quiet">(this one)</span> : null}
                    </th>
                    <td data-head="From">{row.address}</td>
                    <td data-head="Signed in" className="moment">
                      {formatMoment(row.opened_at)}
                    </td>
                    <td data-head="Ends" className="moment">
                      {formatMoment(row.expires_at)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p>
            <Button variant="default" size="xs" loading={out.isPending} onClick={() => out.mutate()}>
              Sign out everywhere
            </Button>{" "}
            <span className="quiet">Ends all of these at once, yours too.</span>
          </p>
          {out.error === null ? null : <p role="alert">{out.error.message}</p>}
        </>
      )}
    </>
  );
}

/** The receivers of notifications and their state. */
function Notices(): ReactNode {
  const { data, error } = useQuery({
    queryKey: ["notices"],
    queryFn: ({ signal }) => call<z.infer<typeof noticesReply>>("/api/notices", { signal }),
    refetchInterval: 30_000,
  });
  return (
    <>
      <h2>Notices</h2>
      {data === undefined ? (
        <Unread what="the receivers" error={error} />
      ) : data.enabled ? (
        <ul className="plain-list">
          {data.receivers.map((receiver) => (
            <li key={receiver.name}>
              <StateMark
                state={RECEIVER_STATES[receiver.state]}
                label={`${receiver.name} (${receiver.kind}): ${receiver.state}`}
              />
              <span>
                {receiver.last_delivery_at === undefined
                  ? "nothing delivered yet"
                  : `last delivery ${formatMoment(receiver.last_delivery_at)}`}
                {receiver.waiting === 0 ? "" : `, ${countText(receiver.waiting, "message")} waiting`}
                {receiver.last_error === undefined ? "" : `. ${receiver.last_error}`}
              </span>
            </li>
          ))}
        </ul>
      ) : (
        <p>Alerts are told to nobody: no receiver is named. They are listed under Alerts all the same.</p>
      )}
    </>
  );
}

const RECEIVER_STATES = { ok: "online", untried: "info", failing: "critical" } as const;
