// The /metrics document as JSON: whole, or its difference to an earlier answer (spec 2.7, T8, D12, D25).
import type { GuardedReadings, NodeMetrics } from "./metrics-document.ts";
import { NEAR_MAPS, USER_MAPS, type UserMaps } from "./user-maps.ts";

/**
 * The document in pieces; without `maps` it names no single user (decision T8). The pieces never change
 * afterwards, so that a slow reader may take its time.
 */
export function metricsJson(
  metrics: NodeMetrics,
  maps?: Pick<UserMaps, "json" | "nearJson">,
  guarded: GuardedReadings = { damaged: [], securityEventsTotal: 0 },
): readonly Buffer[] {
  if (maps === undefined) return [Buffer.from(JSON.stringify(metrics))];
  const pieces: Buffer[] = [Buffer.from(headOf(metrics, guarded)), ...nearMaps(maps)];
  for (const name of USER_MAPS) pieces.push(Buffer.from(`,"${name}":{`), ...maps.json(name), CLOSING_BRACE);
  pieces.push(CLOSING_BRACE);
  return pieces;
}

/** The name of the field that marks a difference; its value is the version that the difference is to. */
export const DIFFERENCE_MARK = "users_since";

/**
 * The difference to the answer of a version and its number: all fields, entries of users that changed since,
 * and the maps of users near their quota if one of those changed. No user goes (D25).
 */
export function metricsDifference(
  metrics: NodeMetrics,
  maps: Pick<UserMaps, "changedJson" | "hasNearChanged" | "nearJson">,
  guarded: GuardedReadings,
  { version, answer }: { readonly version: string; readonly answer: number },
): readonly Buffer[] {
  const pieces: Buffer[] = [Buffer.from(`${headOf(metrics, guarded)},"${DIFFERENCE_MARK}":"${version}"`)];
  if (maps.hasNearChanged(answer)) pieces.push(...nearMaps(maps));
  for (const name of USER_MAPS) {
    pieces.push(Buffer.from(`,"${name}":{`), maps.changedJson(name, answer), CLOSING_BRACE);
  }
  pieces.push(CLOSING_BRACE);
  return pieces;
}

const CLOSING_BRACE = Buffer.from("}");

function headOf(metrics: NodeMetrics, { damaged, securityEventsTotal }: GuardedReadings): string {
  const guarded = `"security_events_total":${securityEventsTotal},"damaged_files":${JSON.stringify(damaged)}`;
  return `${JSON.stringify(metrics).slice(0, -1)},${guarded}`;
}

function nearMaps(maps: Pick<UserMaps, "nearJson">): readonly Buffer[] {
  const names = Object.keys(NEAR_MAPS) as (keyof typeof NEAR_MAPS)[];
  return names.flatMap((name) => [Buffer.from(`,"${name}":{`), maps.nearJson(name), CLOSING_BRACE]);
}
