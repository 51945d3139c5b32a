// A folder: its way, what can be done, its entries, and the place where files are dropped.
import { type DragEvent, type ReactNode, useEffect, useEffectEvent, useState } from "react";
import { type ActsOf, saveAll, trashAll } from "./acts.ts";
import type { Place } from "./api.ts";
import { readDrop, unreadableText } from "./drop.ts";
import { Entries, type EntriesProps, type EntryKey } from "./entries.tsx";
import { FolderDialogs, type OpenDialog } from "./folder-dialogs.tsx";
import { Tools } from "./folder-tools.tsx";
import { goTo } from "./place-in-address.ts";
import { Problem } from "./problem.tsx";
import type { Message } from "./toast.tsx";
import { uploads } from "./uploads.ts";
import { type Folder, type Order, useFolder } from "./use-folder.ts";
import { Way } from "./way.tsx";
import { below, counted, folderOf } from "./words.ts";

const REFRESH_MS = 1_000;
/** After this long without an answer, people want to know why. */
const SLOW_MS = 5_000;
const TILES_KEY = "grove-tiles";

/** What the page is about, and what it tells. */
interface FolderPageProps {
  readonly here: Place;
  /** A file to look at first. */
  readonly show: string | undefined;
  /** How often something was taken back: the folder is read anew after each. */
  readonly undone: number;
  readonly say: (message: Message | undefined) => void;
  readonly onChange: () => void;
}

/** Shows a folder of a root. */
export function FolderPage(props: FolderPageProps): ReactNode {
  const { here, say, onChange } = props;
  const [order, setOrder] = useState<Order>({ key: "name", isDown: false });
  const [filter, setFilter] = useState("");
  const [isTiles, showTiles] = useTiles();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { open, setOpen, shown, look } = useDialogs(props.show);
  const folder = useFolder(here, order, filter, props.undone);
  const refresh = (): void => {
    folder.refresh();
    onChange();
  };
  useArrivals(here, refresh);
  const chosen = folder.entries.filter(({ name }) => selected.has(name));
  const acts = { here, say, refresh };
  // What goes is no longer selected: a second press of the key would ask for it again.
  const trash = (): void => {
    const kept = chosen.find((entry) => entry.kept === true);
    if (kept !== undefined) return say({ text: `Only its owner may delete ${kept.name}.`, isProblem: true });
    setSelected(new Set());
    void trashAll(acts, chosen);
  };
  const onKey = (key: EntryKey): void => {
    if (key === "up") goTo({ kind: "folder", root: here.root, path: folderOf(here.path) });
    else if (chosen.length === 0) return;
    else if (key === "trash") trash();
    else if (key !== "rename" || chosen.length === 1) setOpen(key);
  };
  return (
    <DropPlace here={here} say={say}>
      <Way here={here} />
      <Tools
        here={here}
        chosen={chosen}
        filter={filter}
        isTiles={isTiles}
        onFilter={setFilter}
        onTiles={showTiles}
        onOpen={setOpen}
        onSave={() => void saveAll(acts, chosen)}
        onTrash={trash}
        onSelectNone={() => setSelected(new Set())}
      />
      <Body
        folder={folder}
        filter={filter}
        here={here}
        entries={folder.entries}
        selected={selected}
        isTiles={isTiles}
        order={order}
        onOrder={(key) => setOrder({ key, isDown: order.key === key && !order.isDown })}
        onSelect={setSelected}
        onOpen={({ kind, name }) =>
          kind === "folder" ? goTo({ kind, root: here.root, path: below(here.path, name) }) : look(name)
        }
        onKey={onKey}
      />
      <FolderDialogs
        open={open}
        acts={acts}
        entries={folder.entries}
        chosen={chosen}
        isWhole={!folder.isLoading && folder.problem === undefined}
        shown={shown}
        onSelect={setSelected}
        onClose={() => setOpen(undefined)}
      />
    </DropPlace>
  );
}

/** Which dialog is open, and the file that a preview begins with. */
function useDialogs(show: string | undefined): {
  readonly open: OpenDialog | undefined;
  readonly setOpen: (dialog: OpenDialog | undefined) => void;
  readonly shown: string | undefined;
  readonly look: (name: string) => void;
} {
  const [open, setOpen] = useState<OpenDialog | undefined>(show === undefined ? undefined : "preview");
  const [shown, setShown] = useState(show);
  const look = (name: string): void => {
    setShown(name);
    setOpen("preview");
  };
  return { open, setOpen, shown, look };
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
  filter,
  ...list
}: EntriesProps & { readonly folder: Folder; readonly filter: string }): ReactNode {
  const { isLoading, problem } = folder;
  const isSlow = useSlow(isLoading);
  const isUnknown = (problem !== undefined || isSlow) && list.entries.length === 0;
  const isEmpty = !isLoading && problem === undefined && list.entries.length === 0;
  return (
    <>
      <Trouble folder={folder} />
      {isSlow && problem === undefined && (
        <p className="warning" role="alert">
          ▲ The server that holds these files takes long to answer. It is still being asked.
        </p>
      )}
      {/* Of a folder that nobody has seen, nothing is said. */}
      {isUnknown ? null : isEmpty ? <Nothing here={list.here} filter={filter} /> : <Entries {...list} />}
      <p className="quiet count" aria-live="polite">
        {isLoading ? "Reading the folder … " : ""}
        {isUnknown ? "" : counted(list.entries.length, "item")}
      </p>
    </>
  );
}

/** True once something has taken several seconds. */
function useSlow(isUnderWay: boolean): boolean {
  const [isSlow, setIsSlow] = useState(false);
  useEffect(() => {
    if (!isUnderWay) return undefined;
    const timer = setTimeout(() => setIsSlow(true), SLOW_MS);
    return () => {
      clearTimeout(timer);
      setIsSlow(false);
    };
  }, [isUnderWay]);
  return isSlow;
}

function DropPlace({
  here,
  say,
  children,
}: Pick<ActsOf, "here" | "say"> & { readonly children: ReactNode }): ReactNode {
  const [isOver, setIsOver] = useState(false);
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    setIsOver(false);
    void readDrop(event.dataTransfer).then(({ files, folders, unreadable }) => {
      uploads.add(here, files, folders);
      if (unreadable.length > 0) say({ text: unreadableText(unreadable), isProblem: true });
    });
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
  const { problem } = folder;
  if (problem === undefined) return null;
  const isOver = problem.code === "SIGN_IN";
  // Above what somebody shares lies what they do not.
  const isNotShared = problem.status === 403;
  return (
    <div className="trouble">
      <Problem of={problem} />
      {problem.isPassing && <p className="quiet">It is asked again by itself.</p>}
      {isNotShared ? (
        <button type="button" onClick={() => goTo({ kind: "shared" })}>
          What is shared with me
        </button>
      ) : (
        !isOver && (
          <button type="button" onClick={folder.refresh}>
            Try again
          </button>
        )
      )}
    </div>
  );
}

function Nothing({ here, filter }: { readonly here: Place; readonly filter: string }): ReactNode {
  if (filter.trim() === "")
    return (
      <p className="empty">Nothing is in this folder. Drop files or folders here, or press “Upload files”.</p>
    );
  const { root, path } = here;
  return (
    <div className="empty">
      <p>No name in this folder has “{filter.trim()}”.</p>
      <button type="button" onClick={() => goTo({ kind: "search", root, path, text: filter.trim() })}>
        Search the folders in it
      </button>
    </div>
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
