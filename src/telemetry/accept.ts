// Chooses the form of an answer by the request's Accept header (RFC 9110, section 12.5.1).
import Negotiator from "negotiator";
import type { PrometheusForm } from "./prometheus-form.ts";

/** Types in which /metrics is offered: JSON unless another is preferred (spec 4.4, D12). */
export const METRICS_TYPES = ["application/json", "application/openmetrics-text", "text/plain"] as const;

/** A choice of them; a request without preference gets the first. */
export type MetricsTypes = readonly [
  (typeof METRICS_TYPES)[number],
  ...(readonly (typeof METRICS_TYPES)[number][]),
];

/** The Prometheus form of each type; undefined for JSON. */
export const METRICS_FORMS: Readonly<Record<(typeof METRICS_TYPES)[number], PrometheusForm | undefined>> = {
  "application/json": undefined,
  "application/openmetrics-text": "openmetrics",
  "text/plain": "text",
};

/** Items of an Accept header that are read; no honest request has more. */
const ITEMS_MAX = 32;

/**
 * The offer that a request prefers, or the first of those that it accepts equally. It is the first of all
 * when none is acceptable: an answer in another form is of more use than none. Offers are lower-case media
 * types without parameters.
 */
export function preferredType<T extends string>(
  accept: string | undefined,
  offers: readonly [T, ...(readonly T[])],
): T {
  const ranges = accept?.split(",", ITEMS_MAX).map(withoutParameters).join(",");
  const wanted = new Negotiator({ headers: { accept: ranges } }).mediaType([...offers]);
  return offers.find((offer) => offer === wanted) ?? offers[0];
}

/**
 * Each type has one version, which every requested version gets: of the parameters only the quality counts.
 */
function withoutParameters(range: string): string {
  const [type = "", ...parameters] = range.split(";");
  const quality = parameters.find((parameter) => /^\s*q\s*=/i.test(parameter));
  return quality === undefined ? type : `${type};${quality}`;
}
