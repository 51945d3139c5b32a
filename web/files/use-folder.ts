// The entries of a folder, page by page, kept fresh after changes.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
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
  const underWay = useRef<{ isOld: boolean }>(undefined);
  useEffect(() => {
    const gone = new AbortController();
    const own = { isOld: false };
    underWay.current = own;
    let again: ReturnType<typeof setTimeout> | undefined;
    const entries: FileEntry[] = [];
    // A folder that is read anew stays as it was until all of it is there.
    const take = (isLoading: boolean): void =>
      setState((before) =>
        before.of === here && isLoading && before.entries.length >= entries.length
          ? before
          : { of: here, reading, entries: [...entries], isLoading, problem: undefined },
      );
    const fail = (error: unknown): void => {
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
    };
    const isGone = (): boolean => gone.signal.aborted;
    void readPages({ root, path }, entries, gone.signal, take)
      .catch((error: unknown) => isGone() || fail(error))
      .finally(() => {
        if (underWay.current === own) underWay.current = undefined;
        if (own.isOld && !isGone()) setRound((number) => number + 1);
      });
    return () => {
      gone.abort();
      clearTimeout(again);
    };
  }, [root, path, here, reading]);
  const isHere = state.of === here;
  // A reading that each change began anew would not end before the last of them: uploads change every second.
  const refresh = useCallback(() => {
    if (underWay.current === undefined) setRound((number) => number + 1);
    else underWay.current.isOld = true;
  }, []);
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

/**
 * Reads all pages of a folder. Tells after the first, the last, and whenever entries have doubled whether
 * more are to come: all that is told is sorted and drawn, which after each page took most of the time.
 */
export async function readPages(
  place: Place,
  entries: FileEntry[],
  signal: AbortSignal,
  take: (isLoading: boolean) => void,
): Promise<void> {
  let told = 0;
  for (let page = "", isFirst = true; isFirst || page !== ""; isFirst = false) {
    const found = await door.list(place, page, signal);
    if (signal.aborted) return;
    entries.push(...found.entries);
    page = found.next;
    if (page !== "" && entries.length < 2 * told) continue;
    told = entries.length;
    take(page !== "");
  }
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
