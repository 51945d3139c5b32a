// What runs here: versions of the console and of every node, and what is to be set right.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { z } from "zod";
import type { versionReply } from "#webapi/auth.ts";
import type { noticesReply } from "#webapi/notice.ts";
import { call } from "../live/api.ts";
import { useCluster } from "../live/cluster.ts";
import { useSession } from "../live/session.ts";
import { Failed, Reading } from "../parts/page-state.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { countText } from "../words/number.ts";
import { formatMoment } from "../words/time.ts";

/** The page at "/settings". */
export function Page(): ReactNode {
  const session = useSession();
  const { cluster } = useCluster();
  const version = useQuery({
    queryKey: ["version"],
    queryFn: ({ signal }) => call<z.infer<typeof versionReply>>("/api/version", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  }).data;
  const byVersion = Map.groupBy(cluster?.nodes ?? [], (node) => node.version || "unknown");
  return (
    <>
      <h1>Settings</h1>
      <dl className="facts">
        <Fact name="Console">
          {version === undefined
            ? "…"
            : `${version.version}${version.git_commit === null ? "" : ` (${version.git_commit.slice(0, 12)})`}`}
        </Fact>
        <Fact name="Interface">version {version?.api ?? "…"}</Fact>
        <Fact name="This session ends">
          {session?.expires_at === null || session === undefined ? "–" : formatMoment(session.expires_at)}
        </Fact>
        <Fact name="Operator password">
          {session?.default_password === true
            ? "the built-in one: set your own with grove admin hash-password"
            : "your own"}
        </Fact>
      </dl>
      <Notices />
      <h2>Versions of the nodes</h2>
      {byVersion.size > 1 ? (
        <p>Several versions run at once, as during a rollout. Each works with its neighbour.</p>
      ) : null}
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
    </>
  );
}

/** Whether alerts are told to anybody, and how that goes. */
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
        error === null ? (
          <Reading what="the receivers" />
        ) : (
          <Failed what="The receivers" error={error} />
        )
      ) : data.enabled ? (
        <ul>
          {data.receivers.map((receiver) => (
            <li key={receiver.name}>
              <StateMark
                state={RECEIVER_STATES[receiver.state]}
                label={`${receiver.name} (${receiver.kind}): ${receiver.state}`}
              />
              {receiver.last_delivery_at === undefined
                ? ", nothing delivered yet"
                : `, last delivery ${formatMoment(receiver.last_delivery_at)}`}
              {receiver.waiting === 0 ? "" : `, ${countText(receiver.waiting, "message")} waiting`}
              {receiver.last_error === undefined ? "" : `. ${receiver.last_error}`}
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

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
