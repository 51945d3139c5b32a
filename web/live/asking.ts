// A request that a person begins: in progress, answered or refused.
import { type QueryKey, useMutation } from "@tanstack/react-query";
import { queryClient } from "./query-client.ts";

/** A request in progress, its answer and its refusal. */
export interface Asking<Request, Answer> {
  readonly ask: (request: Request) => void;
  readonly forget: () => void;
  readonly answer: Answer | undefined;
  readonly isBusy: boolean;
  readonly error: Error | null;
}

/** Sends requests; after each, what is known by the key is read again. */
export function useAsking<Request, Answer>(
  key: QueryKey,
  ask: (request: Request) => Promise<Answer>,
): Asking<Request, Answer> {
  const asking = useMutation({
    mutationFn: ask,
    onSettled: () => queryClient.invalidateQueries({ queryKey: key }),
  });
  return {
    ask: (request) => asking.mutate(request),
    forget: () => asking.reset(),
    answer: asking.data,
    isBusy: asking.isPending,
    error: asking.error,
  };
}
