// What runs here: versions of the console and of every node, and what is to be set right.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { z } from "zod";
import type { versionReply } from "#webapi/auth.ts";
import { call } from "../live/api.ts";
import { useCluster } from "../live/cluster.ts";
import { useSession } from "../live/session.ts";
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

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
