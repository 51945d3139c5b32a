// Figures of the shared engine in /metrics and for Prometheus.
import type { MetricFamily } from "./prometheus-form.ts";

/** A node's part in the shared engine. */
export interface EngineReadings {
  /** Since the last renewal of its lease was asked for. */
  readonly leaseAgeMs: number;
  /** Roots that it holds. */
  readonly roots: number;
  /** Rows of the database that it has fetched since it forgot all. */
  readonly cachedRows: number;
  /** Roots that it has taken over since its start, from processes that had ended. */
  readonly takenOverTotal: number;
  /** Requests to the object store that were repeated since the start. */
  readonly storeRetriesTotal: number;
}

/** The document's fields of the shared engine; null on a node with disks of its own. */
export interface EngineFields {
  readonly engine_lease_age_ms: number | null;
  readonly engine_roots: number | null;
  readonly engine_rows_cached: number | null;
  readonly engine_taken_over_total: number | null;
  readonly engine_store_retries_total: number | null;
}

/** The fields of a node. */
export function engineFields(engine: EngineReadings | undefined): EngineFields {
  return {
    engine_lease_age_ms: engine?.leaseAgeMs ?? null,
    engine_roots: engine?.roots ?? null,
    engine_rows_cached: engine?.cachedRows ?? null,
    engine_taken_over_total: engine?.takenOverTotal ?? null,
    engine_store_retries_total: engine?.storeRetriesTotal ?? null,
  };
}

/** Families of the shared engine; none on a node with disks of its own. */
export function engineFamilies(m: EngineFields): MetricFamily[] {
  const age = m.engine_lease_age_ms;
  const family = (
    name: string,
    type: "gauge" | "counter",
    help: string,
    value: number | null,
  ): MetricFamily => ({
    name: `svc_engine_${name}`,
    type,
    help,
    samples: value === null ? [] : [type === "counter" ? { suffix: "_total", value } : { value }],
  });
  return [
    family(
      "lease_age_seconds",
      "gauge",
      "Time since the lease on the shared engine was renewed: from 10 on others take its roots.",
      age === null ? null : age / 1000,
    ),
    family("roots", "gauge", "Roots of the shared engine that this node holds.", m.engine_roots),
    family("rows_cached", "gauge", "Rows of the shared database that are kept here.", m.engine_rows_cached),
    family("taken_over", "counter", "Roots taken over from nodes that had ended.", m.engine_taken_over_total),
    family(
      "store_retries",
      "counter",
      "Requests to the object store that were repeated.",
      m.engine_store_retries_total,
    ),
  ];
}
