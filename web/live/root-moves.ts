// Reads roots that move, and takes nodes out of service, brings them back, rebalances.
import { useQuery } from "@tanstack/react-query";
import type { DrainPlanView, MoveList, RebalancePlanView } from "#wire/webapi/root-move.ts";
import { call } from "./api.ts";
import { type Asking, useAsking } from "./asking.ts";

const KEY = ["moves"] as const;
/** While something moves, and while nothing does. */
const BUSY_MS = 2_000;
const IDLE_MS = 15_000;

/** GET /api/moves, read again and again. */
export function useMoves(): { readonly list: MoveList | undefined; readonly error: Error | null } {
  const query = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call<MoveList>("/api/moves", { signal }),
    refetchInterval: ({ state }) => (isBusy(state.data) ? BUSY_MS : IDLE_MS),
  });
  return { list: query.data, error: query.error };
}

function isBusy(list: MoveList | undefined): boolean {
  if (list === undefined) return true;
  return (
    list.rebalance !== null || list.moves_total > 0 || list.drains.some(({ roots_left: left }) => left > 0)
  );
}

function drainPath(nodeId: string): string {
  return `/api/drains/${encodeURIComponent(nodeId)}`;
}

/** Where the roots of a node go. */
export type DrainWay = "engine" | "nodes";

/** What would go where if a node were taken out of service. */
export function useDrainPlan(nodeId: string): Asking<DrainWay, DrainPlanView> {
  return useAsking(KEY, (way: DrainWay) =>
    call<DrainPlanView>(`${drainPath(nodeId)}/plan`, { method: "POST", body: bodyOf(way) }),
  );
}

/** Takes a node out of service, or brings it back. */
export function useDraining(nodeId: string): Asking<DrainWay | "back", unknown> {
  return useAsking(KEY, (way: DrainWay | "back") =>
    way === "back"
      ? call(drainPath(nodeId), { method: "DELETE" })
      : call(drainPath(nodeId), { method: "PUT", body: bodyOf(way) }),
  );
}

function bodyOf(way: DrainWay): object {
  return { to_engine: way === "engine" };
}

/** Lets a node remove its copies of all roots that have moved away. */
export function useConfirmedCopies(nodeId: string): Asking<void, { readonly decided: number }> {
  return useAsking(KEY, () => call(`${drainPath(nodeId)}/confirm`, { method: "POST" }));
}

/** Confirms or undoes one move. */
export function useDecision(): Asking<
  { readonly owner: string; readonly decision: "confirm" | "undo" },
  unknown
> {
  return useAsking(KEY, ({ owner, decision }) =>
    call(`/api/moves/${encodeURIComponent(owner)}/${decision}`, { method: "POST" }),
  );
}

/** Which roots would bring the nodes into balance. */
export function useRebalancePlan(): Asking<void, RebalancePlanView> {
  return useAsking(KEY, () => call<RebalancePlanView>("/api/rebalance/plan", { method: "POST" }));
}

/** Moves the roots of a shown plan. */
export function useRebalance(): Asking<string, { readonly decided: number }> {
  return useAsking(KEY, (planId: string) =>
    call("/api/rebalance", { method: "POST", body: { plan_id: planId } }),
  );
}

/** Begins no further move of a rebalancing. */
export function useRebalanceEnd(): Asking<void, { readonly decided: number }> {
  return useAsking(KEY, () => call("/api/rebalance", { method: "DELETE" }));
}
