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
 * The offer of the highest quality; the first of those that are equal, and the first of all when none is
 * acceptable: an answer in another form is of more use than none. Offers are lower-case media types without
 * parameters.
 */
export function preferredType<T extends string>(
  accept: string | undefined,
  offers: readonly [T, ...(readonly T[])],
): T {
  const ranges = accept?.split(",", ITEMS_MAX).map(rangeOf) ?? [];
  const qualities = new Set(ranges.map(({ quality }) => quality).filter((quality) => quality > 0));
  for (const least of [...qualities].toSorted((a, b) => b - a)) {
    // Negotiator breaks a tie by which range is more specific or comes first; JSON is the default (D12).
    const header = ranges.map(({ type, quality }) => (quality < least ? `${type};q=0` : type)).join(",");
    const liked = new Negotiator({ headers: { accept: header } }).mediaTypes([...offers]);
    const first = offers.find((offer) => liked.includes(offer));
    if (first !== undefined) return first;
  }
  return offers[0];
}

/** Each type has one version, which every requested version gets: only the quality counts. */
function rangeOf(item: string): { readonly type: string; readonly quality: number } {
  const [type = "", ...parameters] = item.split(";").map((part) => part.trim());
  const quality = parameters.flatMap((parameter) => /^q\s*=\s*(.*)$/i.exec(parameter)?.[1] ?? [])[0] ?? "1";
  // An invalid quality counts as 0: the client did not mean this type to be chosen for it.
  return { type, quality: /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(quality) ? Number(quality) : 0 };
}
