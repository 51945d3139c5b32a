// Chooses a folder as the target of a move or a copy; of many folders those in view are drawn.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef, useState } from "react";
import { Dialog } from "./dialog.tsx";
import { useFolder } from "./use-folder.ts";
import { below, folderOf, nameOf, shownName } from "./words.ts";

const BY_NAME = { key: "name", isDown: false } as const;
const ROW_PX = 36;
/** As many as are seen at once; among more of them people look for a name. */
const FOUND_BY_EYE = 8;

/** The dialog; `act` gets the chosen folder. */
export function FolderPicker(props: {
  readonly title: string;
  readonly button: string;
  readonly root: string;
  readonly first: string;
  readonly act: (folder: string) => Promise<void>;
  readonly onClose: () => void;
}): ReactNode {
  const [path, setPath] = useState(props.first);
  const [problem, setProblem] = useState<string>();
  const [filter, setFilter] = useState("");
  const { entries, isLoading, problem: refusal } = useFolder({ root: props.root, path }, BY_NAME, filter);
  const folders = entries.filter(({ kind }) => kind === "folder");
  const go = (to: string): void => {
    setPath(to);
    setFilter("");
    setProblem(undefined);
  };
  const choose = async (): Promise<void> => {
    try {
      await props.act(path);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <p>
        To: <b>{path === "/" ? "the top folder" : shownName(nameOf(path))}</b>
      </p>
      {(filter !== "" || folders.length > FOUND_BY_EYE) && (
        <input
          type="search"
          aria-label="Find a folder here"
          placeholder="Find a folder"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
      )}
      <Folders key={path} path={path} names={folders.map(({ name }) => name)} onGo={go} />
      {isLoading && <p className="quiet">Reading the folder …</p>}
      {!isLoading && folders.length === 0 && refusal === undefined && (
        <p className="quiet">
          {filter === "" ? "There are no folders in it." : "No folder in it has that in its name."}
        </p>
      )}
      {(problem ?? refusal?.message) !== undefined && (
        <p className="problem" role="alert">
          ■ {shownName(problem ?? refusal?.message ?? "")}
        </p>
      )}
      <div className="actions">
        <button type="button" onClick={props.onClose}>
          Cancel
        </button>
        <button type="button" className="main" onClick={() => void choose()}>
          {props.button}
        </button>
      </div>
    </Dialog>
  );
}

/** The way up and the folders in it. */
function Folders(props: {
  readonly path: string;
  readonly names: readonly string[];
  readonly onGo: (path: string) => void;
}): ReactNode {
  const { path, names, onGo } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const up = path === "/" ? [] : [{ text: "↑ One folder up", to: folderOf(path) }];
  const virtualizer = useVirtualizer({
    count: up.length + names.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
  });
  const rowAt = (index: number): { readonly text: string; readonly to: string } => {
    const name = names[index - up.length] ?? "";
    return up[index] ?? { text: shownName(name), to: below(path, name) };
  };
  return (
    <div ref={scroller} className="picker">
      <ul style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ index, start }) => {
          const { text, to } = rowAt(index);
          return (
            <li
              key={to}
              aria-setsize={up.length + names.length}
              aria-posinset={index + 1}
              style={{ top: start }}
            >
              <button type="button" title={text} onClick={({ detail }) => detail < 2 && onGo(to)}>
                {text}
              </button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
