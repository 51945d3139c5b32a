// The two text forms of Prometheus for one family of metrics: header lines, labels, values.

/** `text` is the classic exposition format 0.0.4, `openmetrics` is OpenMetrics 1.0.0. */
export type PrometheusForm = "text" | "openmetrics";

/** Media types of the forms. */
export const PROMETHEUS_TYPES: Readonly<Record<PrometheusForm, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Labels of a sample, in output order. */
export type Labels = Readonly<Record<string, string>>;

/** One sample: the suffix of the family's name (`_total`, `_sum`, or none), its labels and its value. */
export interface Sample {
  readonly suffix?: "_total" | "_sum" | "_count" | "_info";
  readonly labels?: Labels;
  readonly value: number | bigint | string;
}

/** Metrics of one name. Counters and infos are named without their `_total` and `_info`. */
export interface MetricFamily {
  readonly name: string;
  readonly type: "counter" | "gauge" | "summary" | "info";
  readonly help: string;
  /** Known samples; a family without samples is left out, since a wrong value would be worse. */
  readonly samples: readonly Sample[];
}

/**
 * The lines before a family's samples. The classic form names counters with suffix, and has infos as gauges.
 */
export function familyHeader(family: Omit<MetricFamily, "samples">, form: PrometheusForm): string {
  const { help } = family;
  let { name } = family;
  let type: string = family.type;
  if (form === "text") {
    if (type === "counter") name += "_total";
    if (type === "info") {
      name += "_info";
      type = "gauge";
    }
  }
  return `# HELP ${name} ${escapeHelp(help, form)}\n# TYPE ${name} ${type}\n`;
}

/** One family with all its samples; empty when there are none. */
export function familyText(family: MetricFamily, form: PrometheusForm): string {
  if (family.samples.length === 0) return "";
  const lines = family.samples.map(
    ({ suffix = "", labels, value }) =>
      `${family.name}${suffix}${labels === undefined ? "" : labelText(labels)} ${value}\n`,
  );
  return familyHeader(family, form) + lines.join("");
}

/** The text of a label's value in UTF-8, with backslash, quote and line feed escaped. */
export function escapeLabel(value: string): string {
  if (!/[\\"\n]/.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return `{${pairs.join(",")}}`;
}

/** OpenMetrics escapes quotes in help texts, the classic form does not. */
function escapeHelp(text: string, form: PrometheusForm): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return form === "openmetrics" ? escaped.replaceAll('"', '\\"') : escaped;
}
