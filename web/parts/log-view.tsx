// The log of a service on a node: followed, filtered, copied, downloaded; only visible lines are drawn.
import { Button, Select, Switch, TextInput } from "@mantine/core";
import { type ReactNode, useMemo } from "react";
import type { LogLine } from "#wire/webapi/log-tail.ts";
import { type ShownLog, useLogTail } from "../live/log-tail.ts";
import { readable } from "../words/log-line.ts";
import { countText } from "../words/number.ts";
import { clockText, formatMoment } from "../words/time.ts";
import { CopyButton } from "./copy-button.tsx";
import { LineBox } from "./line-box.tsx";
import { Failed, Reading } from "./page-state.tsx";

const SERVICES = ["fileserver", "metaserver", "admin"];
const LENGTHS = ["50", "200", "500", "1000"];

/** The selection, as the address has it. */
export interface LogChoice {
  readonly search: URLSearchParams;
  readonly set: (name: string, value: string | null) => void;
}

/** The log of a node; `children` precede the other fields. */
export function LogView({
  node,
  choice: { search, set },
  children,
}: {
  readonly node: string;
  readonly choice: LogChoice;
  readonly children?: ReactNode;
}): ReactNode {
  const service = search.get("service") ?? "fileserver";
  const lines = Number(search.get("lines") ?? 200);
  const text = search.get("q") ?? "";
  const isFollowing = search.get("follow") === "1";
  const log = useLogTail({ node, service, lines, isFollowing });
  return (
    <>
      <div className="filter-bar">
        {children}
        <Select
          label="Service"
          allowDeselect={false}
          data={SERVICES}
          value={service}
          onChange={(value) => set("service", value)}
        />
        <Select
          label="Last lines"
          w={112}
          allowDeselect={false}
          data={LENGTHS}
          value={String(lines)}
          onChange={(value) => set("lines", value)}
        />
        <TextInput
          label="Only lines with"
          type="search"
          value={text}
          onChange={(event) => set("q", event.currentTarget.value)}
        />
        <Switch
          label="Follow"
          className="in-line"
          checked={isFollowing}
          onChange={(event) => set("follow", event.currentTarget.checked ? "1" : null)}
        />
        <Button variant="default" onClick={log.readAgain} loading={log.isReading}>
          Read again
        </Button>
      </div>
      <Body log={log} text={text} isFollowing={isFollowing} />
    </>
  );
}

function Body({
  log,
  text,
  isFollowing,
}: {
  readonly log: ShownLog;
  readonly text: string;
  readonly isFollowing: boolean;
}): ReactNode {
  const { lines, tail, error, ended, readAgain } = log;
  const shown = useMemo(() => {
    const wanted = text.toLowerCase();
    return text === "" ? lines : lines.filter(({ message }) => message.toLowerCase().includes(wanted));
  }, [lines, text]);
  if (error !== null) return <Failed what="The log" error={error} retry={readAgain} />;
  if (tail === undefined) return <Reading what="the log" />;
  const all = (): string => shown.map(({ message }) => message).join("\n");
  return (
    <>
      <p className="quiet status-line" role="status">
        <span>
          {shown.length === lines.length
            ? countText(lines.length, "line")
            : `${shown.length.toLocaleString()} of ${countText(lines.length, "line")}`}{" "}
          of {tail.unit} from the {tail.source}
          {tail.truncated ? ", cut: there was more than can be shown" : ""}
          {isFollowing && ended === undefined ? "; new lines come as they are written" : ""}.
          {ended === undefined ? "" : ` No longer followed: ${ended}.`}
        </span>
        <CopyButton text={all} />
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => download(`${all()}\n`, `${tail.node_id}-${tail.service}.log`)}
        >
          Download
        </Button>
      </p>
      {shown.length === 0 ? (
        <p className="panel quiet">
          {lines.length === 0 ? "The log is empty." : `No line has “${text}” in it.`}
        </p>
      ) : (
        <LineBox lines={shown} label="Log" className="output log" lineClass="log-line">
          {(line) => <Line line={line} />}
        </LineBox>
      )}
    </>
  );
}

function Line({ line }: { readonly line: LogLine }): ReactNode {
  const { ts, level, event, text } = readable(line.message);
  const at = ts ?? line.ts;
  const shownLevel = level ?? levelOf(line);
  return (
    <span data-level={shownLevel}>
      {at === null ? null : (
        <span className="quiet" title={formatMoment(at)}>
          {clockText(at, true)}{" "}
        </span>
      )}
      {shownLevel === undefined || shownLevel === "info" ? null : `${shownLevel} `}
      {event === undefined ? null : <b>{event} </b>}
      {text}
    </span>
  );
}

/** Syslog priorities: 3 and below are errors, 4 is a warning. */
function levelOf({ priority }: LogLine): "error" | "warn" | undefined {
  if (priority === null || priority > 4) return undefined;
  return priority === 4 ? "warn" : "error";
}

function download(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
