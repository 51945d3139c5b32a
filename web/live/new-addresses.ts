// Reads who waits with a new e-mail address, and sends an operator's word on it.
import { useQuery } from "@tanstack/react-query";
import type { AddressDecision, NewAddressList } from "#wire/webapi/new-address.ts";
import { call } from "./api.ts";
import { type Asking, useAsking } from "./asking.ts";

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

/** An operator's word on a new address. */
type AddressWord = AddressDecision & { readonly decision: "confirm" | "refuse" };

/** Confirms a new address, or refuses it. */
export function useAddressDecision(): Asking<AddressWord, NewAddressList> {
  return useAsking(KEY, ({ decision, ...body }: AddressWord) =>
    call<NewAddressList>(`/api/new-addresses/${decision}`, { method: "POST", body }),
  );
}
