// The entries of a folder, page by page, kept fresh after changes.
import { useCallback, useEffect, useMemo, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import { door, type Place, Refusal } from "./api.ts";

/** A column by which a folder is sorted. */
export type SortKey = "changed" | "name" | "size";

/** The order of a folder. */
export interface Order {
  readonly key: SortKey;
  readonly isDown: boolean;
}

/** A folder as far as it is known. */
export interface Folder {
  readonly entries: readonly FileEntry[];
  readonly isLoading: boolean;
  readonly problem: Refusal | undefined;
  readonly refresh: () => void;
}

/** After this long a door that did not answer is asked again. */
const AGAIN_MS = 2_000;

const names = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Reads a folder, and again on demand and whenever `version` changes. */
export function useFolder(place: Place, order: Order, filter: string, version = 0): Folder {
  const { root, path } = place;
  const [round, setRound] = useState(0);
  const [state, setState] = useState<{
    readonly of: string;
    /** Which reading of it this is. */
    readonly reading: string;
    readonly entries: readonly FileEntry[];
    readonly isLoading: boolean;
    readonly problem: Refusal | undefined;
  }>({ of: "", reading: "", entries: [], isLoading: true, problem: undefined });
  const here = JSON.stringify([root, path]);
  const reading = `${version} ${round}`;
  useEffect(() => {
    const gone = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      const entries: FileEntry[] = [];
      try {
        for (let page = "", isFirst = true; isFirst || page !== ""; isFirst = false) {
          const found = await door.list({ root, path }, page, gone.signal);
          entries.push(...found.entries);
          page = found.next;
          if (gone.signal.aborted) return;
          // A folder that is read anew stays as it was until all of it is there.
          setState((before) =>
            before.of === here && page !== "" && before.entries.length >= entries.length
              ? before
              : { of: here, reading, entries: [...entries], isLoading: page !== "", problem: undefined },
          );
        }
      } catch (error) {
        if (gone.signal.aborted) return;
        const problem =
          error instanceof Refusal ? error : new Refusal(500, { error: "INTERNAL", message: String(error) });
        if (problem.isPassing) again = setTimeout(() => setRound((number) => number + 1), AGAIN_MS);
        // What was known of the folder is better than nothing.
        setState((before) => ({
          of: here,
          reading,
          entries: before.of === here && before.entries.length > entries.length ? before.entries : entries,
          isLoading: false,
          problem,
        }));
      }
    };
    void read();
    return () => {
      gone.abort();
      clearTimeout(again);
    };
  }, [root, path, here, reading]);
  const isHere = state.of === here;
  const refresh = useCallback(() => setRound((number) => number + 1), []);
  const entries = useMemo(
    () => (isHere ? sorted(state.entries, order, filter) : []),
    [isHere, state.entries, order, filter],
  );
  return {
    entries,
    isLoading: !isHere || state.isLoading,
    problem: isHere ? state.problem : undefined,
    refresh,
  };
}

/** Folders first, then by the order. */
function sorted(entries: readonly FileEntry[], { key, isDown }: Order, filter: string): FileEntry[] {
  const wanted = filter.trim().normalize("NFC").toLowerCase();
  const shown = wanted === "" ? entries : entries.filter(({ name }) => name.toLowerCase().includes(wanted));
  const sign = isDown ? -1 : 1;
  return shown.toSorted((a, b) => {
    if (a.kind !== b.kind) return a.kind === "folder" ? -1 : 1;
    const by = key === "name" ? 0 : key === "size" ? a.size - b.size : a.changed_ms - b.changed_ms;
    return sign * (by === 0 ? names.compare(a.name, b.name) : by);
  });
}
