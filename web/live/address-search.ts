// What a page keeps in its address, so that a link or a reload shows the same.
import { useSearchParams } from "wouter";

/** What stands behind the question mark, and how one name of it is set; null or nothing takes it out. No step back is added by it. */
export function useAddressSearch(): {
  readonly search: URLSearchParams;
  readonly set: (name: string, value: string | null) => void;
} {
  const [search, setSearch] = useSearchParams();
  return {
    search,
    set: (name, value) =>
      setSearch(
        (before) => {
          const next = new URLSearchParams(before);
          if (value === null || value === "") next.delete(name);
          else next.set(name, value);
          return next;
        },
        { replace: true },
      ),
  };
}
