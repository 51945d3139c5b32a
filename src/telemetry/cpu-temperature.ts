// Finds the processor's temperature: hardware monitors, thermal zones, then the `sensors` command (spec 8).
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";

/** How long a found temperature file is read before the next search for a better one. */
const SENSOR_SEARCH_INTERVAL_MS = 60_000;
/** Time limit of `sensors -j`. */
const SENSORS_TIMEOUT_MS = 2_000;
/** How long a result of `sensors` holds; shorter than the poll interval. */
const SENSORS_HOLD_MS = 4_000;
/** Pause after a failed or missing `sensors` command. */
const SENSORS_RETRY_MS: number = 10 * 60_000;

/** Sources of the reading. */
export interface CpuTemperatureDeps {
  readonly clock: Clock;
  /** Default `/sys`. */
  readonly sysRoot?: string;
  /** Returns the output of `sensors -j`; rejects when there is no such command. */
  readonly runSensors?: () => Promise<string>;
}

/** Drivers of the first tier, in order of preference, and their labels (spec 8). */
const DRIVERS: readonly string[] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
const LABELS: readonly string[] = ["Package id 0", "Tctl", "Tdie", "CPU"];
/** Types of thermal zones of the second tier (spec 8). */
const ZONES: readonly string[] = ["bcm2712", "cpu-thermal", "x86_pkg_temp"];
/** Degrees Celsius that a working processor can have; a reading beyond them means a broken sensor. */
const PLAUSIBLE = { above: -60, below: 150 } as const;

interface Reading {
  readonly label: string;
  readonly celsius: number;
  /** The file of the reading; undefined for the command's. */
  readonly path?: string;
}

/** Reads the processor's temperature. */
export class CpuTemperature {
  readonly #sysRoot: string;
  readonly #clock: Clock;
  readonly #runSensors: () => Promise<string>;
  #sensorPath: string | undefined;
  #searchNotBeforeMs = Number.NEGATIVE_INFINITY;
  #sensorsNotBeforeMs = Number.NEGATIVE_INFINITY;
  /** The command's last result, valid until then. */
  #sensorsCelsius: number | undefined;

  constructor(deps: CpuTemperatureDeps) {
    this.#sysRoot = deps.sysRoot ?? "/sys";
    this.#clock = deps.clock;
    this.#runSensors = deps.runSensors ?? runSensorsCommand;
  }

  /** Degrees Celsius, or null when no tier has a reading: 0 would be a lie (decision D12). */
  async read(): Promise<number | null> {
    return (await this.#fromFile()) ?? (await this.#fromCommand()) ?? null;
  }

  /** The first two tiers are files. The right file stays the same, so that a poll seldom searches. */
  async #fromFile(): Promise<number | undefined> {
    const nowMs = this.#clock.steadyMs();
    if (nowMs < this.#searchNotBeforeMs) {
      if (this.#sensorPath === undefined) return undefined;
      const celsius = await readMillidegrees(this.#sensorPath);
      if (celsius !== undefined) return celsius;
    }
    const found = (await this.#fromMonitors()) ?? (await this.#fromZones());
    this.#sensorPath = found?.path;
    this.#searchNotBeforeMs = nowMs + SENSOR_SEARCH_INTERVAL_MS;
    return found?.celsius;
  }

  async #fromMonitors(): Promise<Reading | undefined> {
    const folder = join(this.#sysRoot, "class", "hwmon");
    const readings: Reading[] = [];
    for (const name of await listNumbered(folder, "hwmon")) {
      const monitor = join(folder, name);
      if (!DRIVERS.includes((await readText(join(monitor, "name"))) ?? "")) continue;
      for (const input of await listNumbered(monitor, "temp")) {
        if (!input.endsWith("_input")) continue;
        const path = join(monitor, input);
        const celsius = await readMillidegrees(path);
        const label = (await readText(join(monitor, input.replace("_input", "_label")))) ?? "";
        if (celsius !== undefined) readings.push({ label, celsius, path });
      }
    }
    return best(readings);
  }

  async #fromZones(): Promise<Reading | undefined> {
    const folder = join(this.#sysRoot, "class", "thermal");
    for (const name of await listNumbered(folder, "thermal_zone")) {
      const zone = join(folder, name);
      const type = (await readText(join(zone, "type"))) ?? "";
      // The Raspberry Pi's zones carry their chip's name with a suffix, such as bcm2712_thermal.
      if (
        !ZONES.some((known) => type === known || type.startsWith(`${known}_`) || type.startsWith(`${known}-`))
      ) {
        continue;
      }
      const path = join(zone, "temp");
      const celsius = await readMillidegrees(path);
      if (celsius !== undefined) return { label: type, celsius, path };
    }
    return undefined;
  }

  /** Starting a process is expensive: a result holds for a moment, and a failure pauses the next try. */
  async #fromCommand(): Promise<number | undefined> {
    if (this.#clock.steadyMs() < this.#sensorsNotBeforeMs) return this.#sensorsCelsius;
    try {
      this.#sensorsCelsius = parseSensors(await this.#runSensors());
    } catch {
      // A missing command, missing sensors and bad JSON are the same to the caller.
      this.#sensorsCelsius = undefined;
    }
    const pauseMs = this.#sensorsCelsius === undefined ? SENSORS_RETRY_MS : SENSORS_HOLD_MS;
    this.#sensorsNotBeforeMs = this.#clock.steadyMs() + pauseMs;
    return this.#sensorsCelsius;
  }
}

/**
 * Finds the processor in the output of `sensors -j`, `{"<chip>":{"<label>":{"temp1_input":45.0}}}`. Chips of
 * the known drivers come first, then known labels of any chip; undefined without either. Throws SyntaxError
 * for bad JSON.
 */
export function parseSensors(text: string): number | undefined {
  const known: Reading[] = [];
  const labelled: Reading[] = [];
  for (const [chip, features] of entriesOf(JSON.parse(text))) {
    const isKnown = DRIVERS.some((driver) => chip === driver || chip.startsWith(`${driver}-`));
    for (const [label, values] of entriesOf(features)) {
      for (const [name, celsius] of entriesOf(values)) {
        if (!/^temp\d+_input$/.test(name) || typeof celsius !== "number" || !isPlausible(celsius)) continue;
        if (isKnown) known.push({ label, celsius });
        else if (LABELS.includes(label)) labelled.push({ label, celsius });
      }
    }
  }
  return (best(known) ?? best(labelled))?.celsius;
}

/** The reading with the most preferred label, or the first of all. */
function best(readings: readonly Reading[]): Reading | undefined {
  for (const label of LABELS) {
    const found = readings.find((reading) => reading.label === label);
    if (found !== undefined) return found;
  }
  return readings[0];
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

async function readMillidegrees(path: string): Promise<number | undefined> {
  const text = await readText(path);
  if (text === undefined || !/^-?\d{1,7}$/.test(text)) return undefined;
  const celsius = Number(text) / 1000;
  return isPlausible(celsius) ? celsius : undefined;
}

function isPlausible(celsius: number): boolean {
  return celsius > PLAUSIBLE.above && celsius < PLAUSIBLE.below;
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}

/** Names in numeric order: temp2 before temp10. */
async function listNumbered(folder: string, prefix: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.startsWith(prefix))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

function runSensorsCommand(): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { timeout: SENSORS_TIMEOUT_MS, killSignal: "SIGKILL", maxBuffer: 262_144 } as const;
  execFile("sensors", ["-j"], options, (error, output) => {
    if (error === null) resolve(output);
    else reject(error);
  });
  return promise;
}
