// A folder: its way, what can be done, its entries, and the place where files are dropped.
import { type DragEvent, type ReactNode, useEffect, useEffectEvent, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import { trashAll } from "./acts.ts";
import type { Place } from "./api.ts";
import { readDrop } from "./drop.ts";
import { Entries, type EntriesProps, type EntryKey } from "./entries.tsx";
import { FolderDialogs, type OpenDialog } from "./folder-dialogs.tsx";
import { Tools } from "./folder-tools.tsx";
import { goTo } from "./place-in-address.ts";
import type { Message } from "./toast.tsx";
import { uploads } from "./uploads.ts";
import { type Folder, type Order, useFolder } from "./use-folder.ts";
import { Way } from "./way.tsx";
import { below, counted, folderOf } from "./words.ts";

const REFRESH_MS = 1_000;
const TILES_KEY = "grove-tiles";

/** Shows a folder of a root. */
export function FolderPage(props: {
  readonly here: Place;
  readonly say: (message: Message | undefined) => void;
  readonly onChange: () => void;
}): ReactNode {
  const { here, say, onChange } = props;
  const [order, setOrder] = useState<Order>({ key: "name", isDown: false });
  const [filter, setFilter] = useState("");
  const [isTiles, showTiles] = useTiles();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<OpenDialog>();
  const [shown, setShown] = useState<string>();
  const folder = useFolder(here, order, filter);
  const refresh = (): void => {
    folder.refresh();
    onChange();
  };
  useArrivals(here, refresh);
  const chosen = folder.entries.filter(({ name }) => selected.has(name));
  const acts = { here, say, refresh };
  const openEntry = ({ kind, name }: FileEntry): void => {
    if (kind === "folder") return goTo({ kind, root: here.root, path: below(here.path, name) });
    setShown(name);
    setOpen("preview");
  };
  const onKey = (key: EntryKey): void => {
    if (key === "up") goTo({ kind: "folder", root: here.root, path: folderOf(here.path) });
    else if (chosen.length === 0) return;
    else if (key === "trash") void trashAll(acts, chosen);
    else if (key !== "rename" || chosen.length === 1) setOpen(key);
  };
  return (
    <DropPlace here={here}>
      <Way here={here} />
      <Tools
        here={here}
        chosen={chosen}
        filter={filter}
        isTiles={isTiles}
        onFilter={setFilter}
        onTiles={showTiles}
        onOpen={setOpen}
        onTrash={() => void trashAll(acts, chosen)}
        onSelectNone={() => setSelected(new Set())}
      />
      <Body
        folder={folder}
        isFiltered={filter !== ""}
        here={here}
        entries={folder.entries}
        selected={selected}
        isTiles={isTiles}
        order={order}
        onOrder={(key) => setOrder({ key, isDown: order.key === key && !order.isDown })}
        onSelect={setSelected}
        onOpen={openEntry}
        onKey={onKey}
      />
      <FolderDialogs
        open={open}
        acts={acts}
        entries={folder.entries}
        chosen={chosen}
        shown={shown}
        onSelect={setSelected}
        onClose={() => setOpen(undefined)}
      />
    </DropPlace>
  );
}

/** Tiles or a list, as this browser had it last. */
function useTiles(): readonly [boolean, (isTiles: boolean) => void] {
  const [isTiles, setIsTiles] = useState(() => localStorage.getItem(TILES_KEY) === "1");
  const show = (next: boolean): void => {
    localStorage.setItem(TILES_KEY, next ? "1" : "0");
    setIsTiles(next);
  };
  return [isTiles, show];
}

function Body({
  folder,
  isFiltered,
  ...list
}: EntriesProps & { readonly folder: Folder; readonly isFiltered: boolean }): ReactNode {
  const { isLoading, problem } = folder;
  const isEmpty = !isLoading && problem === undefined && list.entries.length === 0;
  return (
    <>
      <Trouble folder={folder} />
      {isEmpty ? <Nothing isFiltered={isFiltered} /> : <Entries {...list} />}
      <p className="quiet count" aria-live="polite">
        {isLoading ? "Reading the folder … " : ""}
        {counted(list.entries.length, "item")}
      </p>
    </>
  );
}

function DropPlace({ here, children }: { readonly here: Place; readonly children: ReactNode }): ReactNode {
  const [isOver, setIsOver] = useState(false);
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    setIsOver(false);
    void readDrop(event.dataTransfer).then(({ files, folders }) => uploads.add(here, files, folders));
  };
  return (
    <div
      className={isOver ? "folder-page over" : "folder-page"}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={onDrop}
    >
      {children}
    </div>
  );
}

function Trouble({ folder }: { readonly folder: Folder }): ReactNode {
  if (folder.problem === undefined) return null;
  return (
    <p className="problem" role="alert">
      ■ {folder.problem.message}{" "}
      <button type="button" onClick={folder.refresh}>
        Try again
      </button>
    </p>
  );
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }): ReactNode {
  return (
    <p className="empty">
      {isFiltered
        ? "No name in this folder has that."
        : "Nothing is in this folder. Drop files or folders here, or press Upload."}
    </p>
  );
}

/** Reads the folder again some time after something has arrived in it, or below: sizes change too. */
function useArrivals({ root, path: here }: Place, refresh: () => void): void {
  const onArrived = useEffectEvent(refresh);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tell = (): void => {
      timer = undefined;
      onArrived();
    };
    const stop = uploads.onArrival(({ root: into, path }) => {
      const isBelow = here === "/" || path === here || path.startsWith(`${here}/`);
      if (into !== root || !isBelow) return;
      timer ??= setTimeout(tell, REFRESH_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [root, here]);
}
