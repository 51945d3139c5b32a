// Reads who waits with a new e-mail address, and sends an operator's word on it.
import { useMutation, useQuery } from "@tanstack/react-query";
import type { AddressDecision, NewAddressList } from "#wire/webapi/new-address.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";
import type { Asking } from "./root-moves.ts";

const KEY = ["new-addresses"] as const;
/** While a change is on its way to the nodes, and while none is. */
const BUSY_MS = 2_000;
const IDLE_MS = 15_000;

/** GET /api/new-addresses, read again and again. */
export function useNewAddresses(): NewAddressList | undefined {
  const query = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call<NewAddressList>("/api/new-addresses", { signal }),
    refetchInterval: ({ state }) => ((state.data?.changing.length ?? 0) > 0 ? BUSY_MS : IDLE_MS),
  });
  return query.data;
}

/** Confirms a new address, or refuses it. */
export function useAddressDecision(): Asking<
  AddressDecision & { readonly decision: "confirm" | "refuse" },
  NewAddressList
> {
  const asking = useMutation({
    mutationFn: ({
      decision,
      ...body
    }: AddressDecision & { readonly decision: "confirm" | "refuse" }): Promise<NewAddressList> =>
      call<NewAddressList>(`/api/new-addresses/${decision}`, { method: "POST", body }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: KEY }),
  });
  return {
    ask: (request) => asking.mutate(request),
    forget: () => asking.reset(),
    answer: asking.data,
    isBusy: asking.isPending,
    error: asking.error,
  };
}
