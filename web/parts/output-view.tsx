// The output of an action: search, colours by node and stream, following; only visible lines are drawn.
import { Select, TextInput } from "@mantine/core";
import { type ReactNode, useMemo, useState } from "react";
import { useOutput } from "../live/action-output.ts";
import { LINES_KEPT, type OutputLine } from "../live/output-lines.ts";
import { countText } from "../words/number.ts";
import { CopyButton } from "./copy-button.tsx";
import { LineBox } from "./line-box.tsx";

/** Drawn characters of one line; copying takes all of it. */
const LINE_SHOWN = 4_000;

/** Output of the action with this id; `nameOf` maps node ids to names. */
export function OutputView({
  id,
  nameOf,
}: {
  readonly id: string;
  readonly nameOf: (nodeId: string) => string;
}): ReactNode {
  const { lines, dropped, isComplete, error } = useOutput(id);
  const [text, setText] = useState("");
  const [node, setNode] = useState<string | null>(null);
  const nodes = useMemo(() => [...new Set(lines.map((line) => line.node))], [lines]);
  const shown = useMemo(() => {
    if (text === "" && node === null) return lines;
    const wanted = text.toLowerCase();
    return lines.filter(
      (line) => (node === null || line.node === node) && line.text.toLowerCase().includes(wanted),
    );
  }, [lines, node, text]);
  return (
    <section aria-labelledby="output">
      <h2 id="output">Output</h2>
      <div className="filter-bar">
        <TextInput
          aria-label="Search the output"
          placeholder="Search the output"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        {nodes.length < 2 ? null : (
          <Select
            aria-label="Node"
            placeholder="Every node"
            clearable
            data={nodes.map((each) => ({ value: each, label: nameOf(each) }))}
            value={node}
            onChange={setNode}
          />
        )}
        <CopyButton disabled={shown.length === 0} text={() => shown.map((line) => line.text).join("\n")} />
        <span className="quiet" role="status">
          {shown.length === lines.length
            ? countText(lines.length, "line")
            : `${shown.length.toLocaleString()} of ${countText(lines.length, "line")}`}
          {isComplete ? "" : ", more to come"}
        </span>
      </div>
      {error === undefined ? null : <p role="alert">{error}</p>}
      {dropped === 0 ? null : (
        <p className="quiet">
          The last {countText(LINES_KEPT, "line")} are shown; {countText(dropped, "line")} before them{" "}
          {dropped === 1 ? "is" : "are"} kept by the console.
        </p>
      )}
      {shown.length === 0 ? (
        <p className="panel quiet">
          {lines.length > 0
            ? `No line has “${text}” in it.`
            : isComplete
              ? "Nothing was written."
              : "Nothing was written yet. What is written appears here as it comes."}
        </p>
      ) : (
        <LineBox lines={shown} label="Output" className="output" lineClass="output-line">
          {(line) => <Line line={line} name={nodes.length > 1 ? nameOf(line.node) : undefined} />}
        </LineBox>
      )}
    </section>
  );
}

function Line({
  line: { stream, text },
  name,
}: {
  readonly line: OutputLine;
  readonly name: string | undefined;
}): ReactNode {
  return (
    <span data-stream={stream}>
      {name === undefined ? null : <span className="quiet">{name} </span>}
      {text.length > LINE_SHOWN ? `${text.slice(0, LINE_SHOWN)} …` : text}
    </span>
  );
}
