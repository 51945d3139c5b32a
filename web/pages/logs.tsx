// The log of one service on one node: its end, followed as it grows, filtered, copied, downloaded.
import { Button, NumberInput, Select, Switch, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useAddressSearch } from "../live/address-search.ts";
import { call } from "../live/api.ts";
import { useCluster } from "../live/cluster.ts";
import { Failed, Nothing, Reading } from "../parts/page-state.tsx";
import { countText } from "../words/number.ts";

/** GET /api/logs/tail (decision D10). */
interface LogTail {
  readonly node_id: string;
  readonly service: string;
  readonly unit: string;
  readonly source: "journal" | "file";
  readonly lines: readonly {
    readonly ts: number | string | null;
    readonly priority: number;
    readonly message: string;
  }[];
  readonly text: string;
  readonly truncated: boolean;
}

const FOLLOW_MS = 5_000;
const SERVICES = ["fileserver", "metaserver", "admin"];

/** The page at "/logs"; node, service and filter stand in the address. */
export function Page(): ReactNode {
  const { cluster } = useCluster();
  const { search, set } = useAddressSearch();
  const node = search.get("node") ?? cluster?.nodes[0]?.id ?? "";
  const service = search.get("service") ?? "fileserver";
  const lines = Number(search.get("lines") ?? 200);
  const text = (search.get("q") ?? "").toLowerCase();
  const isFollowing = search.get("follow") === "1";
  const query = useQuery({
    queryKey: ["logs", node, service, lines],
    queryFn: ({ signal }) =>
      call<LogTail>(`/api/logs/tail?${new URLSearchParams({ node, service, lines: String(lines) })}`, {
        signal,
      }),
    enabled: node !== "",
    refetchInterval: isFollowing ? FOLLOW_MS : false,
    placeholderData: (before) => before,
  });
  const shown = query.data?.lines.filter(({ message }) => message.toLowerCase().includes(text));
  return (
    <>
      <h1>Logs</h1>
      <Choice
        choice={{ node, service, lines, text: search.get("q") ?? "", isFollowing }}
        set={set}
        isReading={query.isFetching && !isFollowing}
        onReadAgain={() => void query.refetch()}
      />
      {query.error !== null ? (
        <Failed what="The log" error={query.error} retry={() => void query.refetch()} />
      ) : shown === undefined ? (
        node === "" ? (
          <Nothing>No node has registered yet.</Nothing>
        ) : (
          <Reading what="the log" />
        )
      ) : (
        <Shown shown={shown} tail={query.data as LogTail} />
      )}
    </>
  );
}

interface Chosen {
  readonly node: string;
  readonly service: string;
  readonly lines: number;
  readonly text: string;
  readonly isFollowing: boolean;
}

function Choice({
  choice: { node, service, lines, text, isFollowing },
  set,
  isReading,
  onReadAgain,
}: {
  readonly choice: Chosen;
  readonly set: (name: string, value: string | null) => void;
  readonly isReading: boolean;
  readonly onReadAgain: () => void;
}): ReactNode {
  const { cluster } = useCluster();
  return (
    <div style={{ display: "flex", gap: 12, flexWrap: "wrap", alignItems: "end", marginBottom: 12 }}>
      <Select
        label="Node"
        searchable
        limit={100}
        data={(cluster?.nodes ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        value={node}
        onChange={(value) => set("node", value)}
      />
      <Select
        label="Service"
        allowDeselect={false}
        data={SERVICES}
        value={service}
        onChange={(value) => set("service", value)}
      />
      <NumberInput
        label="Lines"
        min={10}
        max={1000}
        w={96}
        value={lines}
        onChange={(value) => set("lines", String(value))}
      />
      <TextInput label="Only with" value={text} onChange={(event) => set("q", event.currentTarget.value)} />
      <Switch
        label="Follow"
        checked={isFollowing}
        onChange={(event) => set("follow", event.currentTarget.checked ? "1" : null)}
      />
      <Button variant="default" onClick={onReadAgain} loading={isReading}>
        Read again
      </Button>
    </div>
  );
}

function Shown({ shown, tail }: { readonly shown: LogTail["lines"]; readonly tail: LogTail }): ReactNode {
  const all = shown.map(({ message }) => message).join("\n");
  return (
    <>
      <p className="quiet" role="status">
        {countText(shown.length, "line")} of {tail.unit} from the {tail.source}
        {tail.truncated ? ", cut: there was more than can be shown" : ""}.{" "}
        <Button variant="default" size="compact-sm" onClick={() => void navigator.clipboard.writeText(all)}>
          Copy
        </Button>{" "}
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => download(all, `${tail.node_id}-${tail.service}.log`)}
        >
          Download
        </Button>
      </p>
      {/* A region that scrolls must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className="output log" tabIndex={0} aria-label="Log">
        {all === "" ? "No line fits." : all}
      </pre>
    </>
  );
}

function download(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
