// The output of an action: drawn as far as it is in sight, searched, told apart by node and stream, kept at its end while it grows.
import { Button, Select, TextInput } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { type OutputEntry, useOutput } from "../live/actions.ts";
import { countText } from "../words/number.ts";

const LINE_PX = 20;

interface Line {
  readonly node: string;
  readonly stream: OutputEntry["stream"];
  readonly text: string;
}

/** Output of the action with this id. */
export function OutputView({ id }: { readonly id: string }): ReactNode {
  const { entries, isComplete, error } = useOutput(id);
  const [text, setText] = useState("");
  const [node, setNode] = useState<string | null>(null);
  const lines = useMemo(() => linesOf(entries), [entries]);
  const nodes = useMemo(() => [...new Set(lines.map((line) => line.node))], [lines]);
  const shown = useMemo(() => {
    const wanted = text.toLowerCase();
    return lines.filter(
      (line) => (node === null || line.node === node) && line.text.toLowerCase().includes(wanted),
    );
  }, [lines, node, text]);
  return (
    <section aria-labelledby="output">
      <h2 id="output">Output</h2>
      <div style={{ display: "flex", gap: 12, flexWrap: "wrap", marginBottom: 8, alignItems: "center" }}>
        <TextInput
          aria-label="Search the output"
          placeholder="Search"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        {nodes.length < 2 ? null : (
          <Select
            aria-label="Node"
            placeholder="Every node"
            clearable
            data={nodes}
            value={node}
            onChange={setNode}
          />
        )}
        <span className="quiet" role="status">
          {countText(shown.length, "line")}
          {isComplete ? "" : ", more to come"}
        </span>
        <Button
          variant="default"
          size="compact-sm"
          disabled={shown.length === 0}
          onClick={() => void navigator.clipboard.writeText(shown.map((line) => line.text).join("\n"))}
        >
          Copy
        </Button>
      </div>
      {error === undefined ? null : <p role="alert">{error}</p>}
      {shown.length === 0 ? (
        <p className="panel quiet">{isComplete ? "Nothing was written." : "Nothing was written yet."}</p>
      ) : (
        <Lines lines={shown} hasNodes={nodes.length > 1} />
      )}
    </section>
  );
}

function Lines({
  lines,
  hasNodes,
}: {
  readonly lines: readonly Line[];
  readonly hasNodes: boolean;
}): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  useEffect(() => {
    if (isAtEnd.current) rows.scrollToIndex(lines.length - 1);
  }, [lines.length, rows]);
  return (
    <div
      ref={box}
      className="output"
      role="log"
      aria-label="Output"
      // A region that scrolls must be reachable by keyboard.
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight >= scrollHeight - LINE_PX;
      }}
    >
      <div style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const line = lines[index];
          return line === undefined ? null : (
            <div
              key={index}
              className="output-line"
              data-stream={line.stream}
              style={{ transform: `translateY(${start}px)` }}
            >
              {hasNodes ? <span className="quiet">{line.node} </span> : null}
              {line.text}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Pieces end where they were read, not where lines end: what belongs together is put together per node and stream. */
function linesOf(entries: readonly OutputEntry[]): Line[] {
  const lines: Line[] = [];
  const open = new Map<string, number>();
  for (const { node_id: node, stream, data } of entries) {
    const key = `${node} ${stream}`;
    const parts = data.split("\n");
    parts.forEach((part, index) => {
      const at = index === 0 ? open.get(key) : undefined;
      const before = at === undefined ? undefined : lines[at];
      if (at !== undefined && before !== undefined) lines[at] = { ...before, text: before.text + part };
      else if (index < parts.length - 1 || part !== "") lines.push({ node, stream, text: part });
      if (index < parts.length - 1) open.delete(key);
      else if (part !== "" && at === undefined) open.set(key, lines.length - 1);
    });
  }
  return lines;
}
