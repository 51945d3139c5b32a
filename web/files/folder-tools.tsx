// What can be done in a folder, and with what is selected in it.
import { type ReactNode, useEffect, useRef } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import type { Place } from "./api.ts";
import { readChosen } from "./drop.ts";
import type { OpenDialog } from "./folder-dialogs.tsx";
import { goTo } from "./place-in-address.ts";
import { uploads } from "./uploads.ts";
import { counted } from "./words.ts";

/** What the tools need of the folder. */
export interface ToolsProps {
  readonly here: Place;
  readonly chosen: readonly FileEntry[];
  readonly filter: string;
  readonly isTiles: boolean;
  readonly onFilter: (text: string) => void;
  readonly onTiles: (isTiles: boolean) => void;
  readonly onOpen: (dialog: OpenDialog) => void;
  readonly onSave: () => void;
  readonly onTrash: () => void;
  readonly onSelectNone: () => void;
}

/** Shows them. */
export function Tools(props: ToolsProps): ReactNode {
  const { here, chosen, filter, isTiles } = props;
  return (
    <div className="tools" role="toolbar" aria-label="What can be done">
      {chosen.length > 0 ? (
        <ChosenTools {...props} />
      ) : (
        <>
          <Chooser here={here} />
          <button type="button" onClick={() => props.onOpen("folder")}>
            New folder
          </button>
        </>
      )}
      <span className="tools-end">
        <form
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            if (filter.trim() !== "")
              goTo({ kind: "search", root: here.root, path: here.path, text: filter.trim() });
          }}
        >
          <input
            type="search"
            aria-label="Find a name: here as you type, below with Enter"
            placeholder="Find a name"
            value={filter}
            onChange={(event) => props.onFilter(event.target.value)}
          />
        </form>
        <button type="button" onClick={() => props.onTiles(!isTiles)}>
          {isTiles ? "List" : "Tiles"}
        </button>
      </span>
    </div>
  );
}

function ChosenTools({ here, chosen, onOpen, onSave, onTrash, onSelectNone }: ToolsProps): ReactNode {
  const isOne = chosen.length === 1;
  return (
    <>
      <span className="quiet">{counted(chosen.length, "item")} selected</span>
      <button type="button" onClick={onSave}>
        Download
      </button>
      {isOne && (
        <button type="button" onClick={() => onOpen("rename")}>
          Rename
        </button>
      )}
      {isOne && here.root === "" && (
        <button type="button" onClick={() => onOpen("share")}>
          Share
        </button>
      )}
      <button type="button" onClick={() => onOpen("move")}>
        Move
      </button>
      <button type="button" onClick={() => onOpen("copy")}>
        Copy
      </button>
      {chosen.every(({ kept }) => kept !== true) && (
        <button type="button" onClick={onTrash}>
          Delete
        </button>
      )}
      <button type="button" className="plain" onClick={onSelectNone}>
        Select none
      </button>
    </>
  );
}

function Chooser({ here }: { readonly here: Place }): ReactNode {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  useEffect(() => folder.current?.setAttribute("webkitdirectory", ""), []);
  const take = (input: HTMLInputElement): void => {
    const chosen = readChosen(input.files ?? new DataTransfer().files);
    uploads.add(here, chosen.files, chosen.folders);
    input.value = "";
  };
  return (
    <>
      <input ref={files} type="file" multiple hidden onChange={(event) => take(event.target)} />
      <input ref={folder} type="file" hidden onChange={(event) => take(event.target)} />
      <button type="button" className="main" onClick={() => files.current?.click()}>
        Upload files
      </button>
      <button type="button" onClick={() => folder.current?.click()}>
        Upload folder
      </button>
    </>
  );
}
