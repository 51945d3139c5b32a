// What a search for a name has found below a folder.
import { type ReactNode, useState } from "react";
import type { FoundEntry, FoundNames } from "#wire/webapi/file-access.ts";
import { door, type Place } from "./api.ts";
import { Icon } from "./entry.tsx";
import { goTo } from "./place-in-address.ts";
import { Problem } from "./problem.tsx";
import { useLoaded } from "./use-loaded.ts";
import { useNow } from "./use-now.ts";
import { bytesText, counted, exactTime, folderOf, nameOf, shownName, timeText } from "./words.ts";

/** Shows it. */
export function SearchPage(props: { readonly here: Place; readonly text: string }): ReactNode {
  const { here, text } = props;
  const { root, path } = here;
  const [typed, setTyped] = useState(text);
  const result = useLoaded("", () => door.search(here, text));
  const found = result.value;
  const where =
    path === "/" ? (root === "" ? "all of your files" : `all that ${root} shares`) : shownName(nameOf(path));
  return (
    <>
      <h1>Names with “{shownName(text)}”</h1>
      <form
        className="tools"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim() !== "") goTo({ kind: "search", root, path, text: typed.trim() });
        }}
      >
        <input
          type="search"
          aria-label="Search for a name"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <button type="submit">Search</button>
        <button type="button" className="plain" onClick={() => goTo({ kind: "folder", root, path })}>
          Back to the folder
        </button>
      </form>
      <Problem of={result.problem} />
      {found === undefined && result.problem === undefined && <p>Searching in {where} …</p>}
      {found !== undefined && <Found found={found} root={root} where={where} />}
    </>
  );
}

function Found(props: {
  readonly found: FoundNames;
  readonly root: string;
  readonly where: string;
}): ReactNode {
  const { found, looked, isWhole } = props.found;
  const nowMs = useNow();
  return (
    <>
      <p className="quiet" role="status">
        {found.length === 0 ? "Nothing" : counted(found.length, "name")} found in {props.where}, of{" "}
        {looked.toLocaleString("en")}.
        {!isWhole && " There is more than one search looks at: go into a folder and search from there."}
      </p>
      {found.length === 0 && <p className="empty">No name in {props.where} has that.</p>}
      <ul className="rows found">
        {found.map((entry) => (
          <FoundRow key={entry.path} entry={entry} root={props.root} nowMs={nowMs} />
        ))}
      </ul>
    </>
  );
}

function FoundRow(props: {
  readonly entry: FoundEntry;
  readonly root: string;
  readonly nowMs: number;
}): ReactNode {
  const { entry, root, nowMs } = props;
  const { path, kind, name, size, changed_ms: changedMs } = entry;
  const open = (): void =>
    kind === "folder"
      ? goTo({ kind, root, path })
      : goTo({ kind: "folder", root, path: folderOf(path), show: name });
  return (
    <li>
      <Icon isFolder={kind === "folder"} />
      <div>
        <button type="button" className="plain name" onClick={open}>
          {shownName(name)}
        </button>
        <span className="quiet">
          in {shownName(folderOf(path))} · {bytesText(size)} ·{" "}
          <span title={exactTime(changedMs)}>{timeText(changedMs, nowMs)}</span>
        </span>
      </div>
    </li>
  );
}
