// State of a page in its address, so that links and reloads show the same.
import { useLocation, useSearchParams } from "wouter";

/** The query of the address, and a setter; null or "" removes a name. It adds no history entry. */
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

/** The address of the sign-in that leads back to what the page shows now. */
export function useSignInAddress(): string {
  const [path] = useLocation();
  const [search] = useSearchParams();
  const back = path === "/sign-in" ? "/" : search.size === 0 ? path : `${path}?${search}`;
  return `/sign-in?back=${encodeURIComponent(back)}`;
}
