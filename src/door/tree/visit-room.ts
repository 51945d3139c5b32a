// Which visit gives way to a new one: a network's own, before those of other visitors.

/** Visits that are kept with their connections. */
export const VISITS_KEPT = 256;
/** Those of one network of visitors among them. */
export const VISITS_KEPT_PER_NETWORK = 64;

/** A visit that is kept. */
export interface KeptVisit {
  readonly network: string;
  readonly usedMs: number;
}

/** The name of the visit that gives way to a new one of a network; undefined where there is room. */
export function visitToDrop(kept: ReadonlyMap<string, KeptVisit>, network: string): string | undefined {
  const own = [...kept].filter(([, visit]) => visit.network === network);
  if (own.length >= VISITS_KEPT_PER_NETWORK) return oldestOf(own);
  return kept.size >= VISITS_KEPT ? oldestOf([...kept]) : undefined;
}

function oldestOf(visits: readonly (readonly [string, KeptVisit])[]): string | undefined {
  return visits.toSorted(([, a], [, b]) => a.usedMs - b.usedMs)[0]?.[0];
}
