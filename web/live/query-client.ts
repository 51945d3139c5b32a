// The cache of everything read from the console.
import { QueryClient } from "@tanstack/react-query";
import { ApiProblem } from "./api.ts";

/** One cache for all pages. The socket writes live data into it; the rest is read again when a page opens. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      gcTime: 10 * 60_000,
      // A refusal is final; for a console that is away the connection retries.
      retry: (failures, error) => failures < 2 && !(error instanceof ApiProblem && error.status < 500),
    },
  },
});
