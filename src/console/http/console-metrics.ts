// Metrics of the console, as JSON and Prometheus text: event loop, memory, requests and those of its parts.
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "#base/clock.ts";
import { VERSION } from "#base/version.ts";
import { gitCommit } from "#os/git-commit.ts";
import { familyText, type MetricFamily, type PrometheusForm } from "#telemetry/prometheus-form.ts";

/** One metric that a part of the console adds. */
export interface ConsoleFigure {
  /** Prometheus name without `svc_console_` and `_total`, in base units: `sockets`, `snapshot_bytes`. */
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  /** The current value; null while unknown. It never depends on users. */
  readonly read: () => number | null;
}

/** The sampler's own interval, which its readings include. */
const SAMPLE_MS = 10;
/** Readings cover the last full minute and the current one. */
const PERIOD_MS = 60_000;
const NS_PER_S = 1e9;

type LoopMonitor = ReturnType<typeof monitorEventLoopDelay>;

interface LoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Metrics of the running console. */
export class ConsoleMetrics {
  readonly #clock: Clock;
  readonly #startedSteadyMs: number;
  readonly #startedWallMs: number;
  readonly #figures: ConsoleFigure[] = [];
  readonly #loop: LoopMonitor = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  readonly #stopTurning: () => void;
  #lastMinute: LoopDelay | undefined;
  #requests = 0;
  #failures = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedSteadyMs = clock.steadyMs();
    this.#startedWallMs = clock.wallMs();
    this.#loop.enable();
    this.#stopTurning = clock.every(PERIOD_MS, () => {
      this.#lastMinute = readLoop(this.#loop);
      this.#loop.reset();
    });
    this.add(...this.#ownFigures());
  }

  /** Adds metrics. Throws when a name is taken. */
  add(...figures: readonly ConsoleFigure[]): void {
    for (const figure of figures) {
      if (this.#figures.some(({ name }) => name === figure.name))
        throw new TypeError(`two figures ${figure.name}`);
      this.#figures.push(figure);
    }
  }

  /** Counts an answered request. */
  countRequest(status: number): void {
    this.#requests++;
    if (status >= 500) this.#failures++;
  }

  /** All metrics as one flat JSON object; names of counters end in `_total`. */
  document(): Record<string, string | number | null> {
    const document: Record<string, string | number | null> = { version: VERSION, git_commit: gitCommit() };
    for (const { name, type, read } of this.#figures) {
      document[type === "counter" ? `${name}_total` : name] = read();
    }
    return document;
  }

  /** The same as Prometheus text, without unknown values. */
  prometheus(form: PrometheusForm): string {
    const families: MetricFamily[] = [
      {
        name: "svc_build",
        type: "info",
        help: "Version of the program and the commit it was made from.",
        samples: [{ suffix: "_info", labels: { version: VERSION, git_commit: gitCommit() ?? "" }, value: 1 }],
      },
      ...this.#figures.map(({ name, type, help, read }): MetricFamily => {
        const value = read();
        const suffix = type === "counter" ? { suffix: "_total" as const } : {};
        return {
          name: `svc_console_${name}`,
          type,
          help,
          samples: value === null ? [] : [{ ...suffix, value }],
        };
      }),
    ];
    return (
      families.map((family) => familyText(family, form)).join("") + (form === "openmetrics" ? "# EOF\n" : "")
    );
  }

  /** Stops the samplers. */
  close(): void {
    this.#stopTurning();
    this.#loop.disable();
  }

  /** The longest delay of the event loop over the last one to two minutes, in seconds. */
  #delay(which: keyof LoopDelay): number {
    return Math.max(readLoop(this.#loop)[which], this.#lastMinute?.[which] ?? 0);
  }

  #ownFigures(): ConsoleFigure[] {
    const gauge = (name: string, help: string, read: () => number | null): ConsoleFigure => ({
      name,
      type: "gauge",
      help,
      read,
    });
    return [
      gauge("start_time_seconds", "When this process started, in seconds since 1970.", () =>
        Math.floor(this.#startedWallMs / 1_000),
      ),
      gauge("uptime_seconds", "How long this process has run.", () =>
        Math.floor((this.#clock.steadyMs() - this.#startedSteadyMs) / 1_000),
      ),
      gauge("event_loop_delay_p50_seconds", "Median delay of the event loop in the last two minutes.", () =>
        this.#delay("p50"),
      ),
      gauge("event_loop_delay_p99_seconds", "99th percentile of that delay.", () => this.#delay("p99")),
      gauge("event_loop_delay_max_seconds", "Longest of those delays.", () => this.#delay("max")),
      gauge("resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss()),
      {
        name: "cpu_seconds",
        type: "counter",
        help: "Processor time that the process has used.",
        read: cpuSeconds,
      },
      { name: "requests", type: "counter", help: "Requests answered.", read: () => this.#requests },
      {
        name: "requests_failed",
        type: "counter",
        help: "Requests answered with a fault of the console or of a node.",
        read: () => this.#failures,
      },
    ];
  }
}

function readLoop(loop: LoopMonitor): LoopDelay {
  const seconds = (ns: number): number =>
    Math.round(Math.max(0, ns / NS_PER_S - SAMPLE_MS / 1_000) * 1e6) / 1e6;
  if (loop.count === 0) return { p50: 0, p99: 0, max: 0 };
  return { p50: seconds(loop.percentile(50)), p99: seconds(loop.percentile(99)), max: seconds(loop.max) };
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
