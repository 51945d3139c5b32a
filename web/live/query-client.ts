// The cache of everything that was read from the console.
import { QueryClient } from "@tanstack/react-query";
import { ApiProblem } from "./api.ts";

/** One cache for all pages. Live data is written into it by the socket; the rest is read again when a page is shown. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      gcTime: 10 * 60_000,
      // A refusal stays one; a console that is away is asked again by the connection's own care.
      retry: (failures, error) => failures < 2 && !(error instanceof ApiProblem && error.status < 500),
    },
  },
});
