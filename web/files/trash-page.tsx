// The trash: what is in it, and how it comes back or goes for good.
import { type ReactNode, useCallback, useEffect, useState } from "react";
import type { TrashEntry, TrashList } from "#wire/webapi/files.ts";
import { door } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { goTo } from "./place-in-address.ts";
import { Problem } from "./problem.tsx";
import type { Message } from "./toast.tsx";
import { useAct } from "./use-act.ts";
import { useNow } from "./use-now.ts";
import { bytesText, counted, exactTime, folderOf, nameOf, shownName, timeText } from "./words.ts";

type Say = (message: Message | undefined) => void;

/** Shows it. */
export function TrashPage({
  root,
  say,
  onChange,
}: {
  /** Empty for one's own. */
  readonly root: string;
  readonly say: Say;
  readonly onChange: () => void;
}): ReactNode {
  const { items, hasMore, problem, readAgain, more, run } = useTrash(root, say, onChange);
  // What a question is about stays that, whatever comes into the list meanwhile.
  const [asked, setAsked] = useState<TrashEntry | "all">();
  const restore = (item: TrashEntry): Promise<void> =>
    run(async () => {
      const { path } = await door.restore(root, item.id);
      const folder = folderOf(path);
      return { text: `Restored ${nameOf(path)} to ${folder === "/" ? "the top folder" : folder}.` };
    });
  const purge = (which: TrashEntry | "all"): Promise<void> => {
    setAsked(undefined);
    return run(async () => {
      const purged = await door.purge(root, which === "all" ? [] : [which.id]);
      return { text: `Deleted ${counted(purged.items, "item")} for good.` };
    });
  };
  return (
    <>
      <Head root={root} />
      <Problem of={problem} />
      {problem !== undefined && (
        <button type="button" onClick={readAgain}>
          Try again
        </button>
      )}
      {items === undefined && problem === undefined && <p>Reading the trash …</p>}
      {items?.length === 0 && <p className="empty">The trash is empty.</p>}
      {items !== undefined && items.length > 0 && (
        <>
          <div className="tools">
            <button type="button" onClick={() => setAsked("all")}>
              Empty the trash
            </button>
          </div>
          <ul className="rows two">
            {items.map((item) => (
              <TrashRow
                key={item.id}
                item={item}
                isShared={root !== ""}
                onRestore={() => restore(item)}
                onPurge={() => setAsked(item)}
              />
            ))}
          </ul>
          {hasMore && (
            <button type="button" onClick={more}>
              Show more
            </button>
          )}
        </>
      )}
      {asked !== undefined && (
        <PurgeDialog
          what={asked === "all" ? "Everything in the trash" : shownName(nameOf(asked.path))}
          onPurge={() => void purge(asked)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function Head({ root }: { readonly root: string }): ReactNode {
  return (
    <>
      <h1>{root === "" ? "Trash" : `Trash of ${root}`}</h1>
      {root !== "" && (
        <button type="button" className="plain" onClick={() => goTo({ kind: "folder", root, path: "/" })}>
          Back to the files
        </button>
      )}
      <p className="quiet">
        What is here still takes space. It goes by itself after some days, the oldest first.
      </p>
    </>
  );
}

function useTrash(
  root: string,
  say: Say,
  onChange: () => void,
): {
  readonly items: readonly TrashEntry[] | undefined;
  readonly hasMore: boolean;
  /** Why it could not be read. */
  readonly problem: unknown;
  readonly readAgain: () => void;
  readonly more: () => void;
  readonly run: (act: () => Promise<Message>) => Promise<void>;
} {
  const [list, setList] = useState<TrashList>();
  const [problem, setProblem] = useState<unknown>();
  const read = useCallback(() => void door.trash(root, "").then(setList, setProblem), [root]);
  useEffect(read, [read]);
  const readAgain = (): void => {
    setProblem(undefined);
    read();
  };
  const more = (): void => {
    const page = list?.next ?? "";
    setProblem(undefined);
    door.trash(root, page).then(
      // A page that has been asked for twice, or of a list that was read anew, is none of this list.
      ({ items, next }) =>
        setList((before) => (before?.next === page ? { items: [...before.items, ...items], next } : before)),
      setProblem,
    );
  };
  const run = async (act: () => Promise<Message>): Promise<void> => {
    try {
      say(await act());
      setList(await door.trash(root, ""));
    } catch (error) {
      say({ text: error instanceof Error ? error.message : String(error), isProblem: true });
    }
    onChange();
  };
  return { items: list?.items, hasMore: (list?.next ?? "") !== "", problem, readAgain, more, run };
}

function TrashRow(props: {
  readonly item: TrashEntry;
  /** True where several people delete. */
  readonly isShared: boolean;
  readonly onRestore: () => Promise<void>;
  readonly onPurge: () => void;
}): ReactNode {
  const { act, isBusy } = useAct(props.onRestore);
  const { path, size, trashed_ms: trashedMs, by } = props.item;
  const name = shownName(nameOf(path));
  const nowMs = useNow();
  return (
    <li>
      <div>
        <b>{name}</b>
        <span className="quiet">
          from {shownName(folderOf(path))} · {bytesText(size)} ·{" "}
          <span title={exactTime(trashedMs)}>{timeText(trashedMs, nowMs)}</span>
          {props.isShared && ` · by ${by}`}
        </span>
      </div>
      <button type="button" disabled={isBusy} onClick={() => void act()} aria-label={`Restore ${name}`}>
        Restore
      </button>
      <button type="button" onClick={props.onPurge} aria-label={`Delete for good: ${name}`}>
        Delete for good
      </button>
    </li>
  );
}

function PurgeDialog(props: {
  readonly what: string;
  readonly onPurge: () => void;
  readonly onClose: () => void;
}): ReactNode {
  return (
    <Dialog title="Delete for good?" onClose={props.onClose}>
      <p>{props.what} will be gone, and nobody can bring it back.</p>
      <div className="actions">
        <button type="button" onClick={props.onClose}>
          Cancel
        </button>
        <button type="button" className="danger" onClick={props.onPurge}>
          Delete for good
        </button>
      </div>
    </Dialog>
  );
}
