// The machine's gauges for /metrics: disk, processor, memory, load (spec 2.7).
import { readFile, statfs } from "node:fs/promises";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { BoundedLooks } from "./bounded-looks.ts";
import { CpuTemperature } from "./cpu-temperature.ts";
import { type HostReadings, percent } from "./metrics-document.ts";

/** A filesystem as statfs describes it. */
type DiskBlocks = Readonly<Record<"bsize" | "blocks" | "bfree" | "bavail" | "files" | "ffree", bigint>>;

/** Sources of the gauges; tests use other roots. */
export interface HostGaugesDeps {
  readonly clock: Clock;
  /** The folder whose filesystem is measured. */
  readonly dataDirectory: string;
  /** Default `/proc`. */
  readonly procRoot?: string;
  /** Default statfs. */
  readonly readDisk?: (folder: string) => Promise<DiskBlocks>;
  /** Temperature of the processor; default from CpuTemperature. */
  readonly readCpuTemperature?: () => Promise<number | null>;
}

/** Ticks of all processors since the machine started. */
interface CpuTicks {
  readonly busy: number;
  readonly total: number;
}

/** Two readings closer than this say too little about the processor: the last value holds. */
const CPU_SPAN_MIN_MS = 200;
const DISK_UNKNOWN = {
  diskTotalBytes: null,
  diskUsedBytes: null,
  diskFreeBytes: null,
  inodeFree: null,
  inodeTotal: null,
};

type DiskReadings = Pick<HostReadings, keyof typeof DISK_UNKNOWN>;

/** Reads the machine on demand, cheaply enough for every poll; between polls it reads nothing. */
export class HostGauges {
  readonly #deps: HostGaugesDeps;
  readonly #procRoot: string;
  readonly #looks: BoundedLooks;
  readonly #readCpuTemperature: () => Promise<number | null>;
  #reading: Promise<HostReadings> | undefined;
  #bootId: string | undefined;
  #ticks: CpuTicks = { busy: 0, total: 0 };
  #ticksAtMs = Number.NEGATIVE_INFINITY;
  #cpuUsagePercent: number | null = null;

  constructor(deps: HostGaugesDeps) {
    this.#deps = deps;
    this.#procRoot = deps.procRoot ?? "/proc";
    this.#looks = new BoundedLooks(deps.clock);
    const temperature = new CpuTemperature({ clock: deps.clock });
    this.#readCpuTemperature = deps.readCpuTemperature ?? (() => temperature.read());
  }

  /**
   * Reads all gauges now; one that the machine lacks, or does not tell in time, is null. Processor use is the
   * share since the previous read, and at the first read since the machine started. Concurrent callers share
   * one reading.
   */
  read(): Promise<HostReadings> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readAll(): Promise<HostReadings> {
    const [disk, memory, load, bootId, cpuTempCelsius] = await Promise.all([
      this.#readDisk(),
      this.#readMemory(),
      this.#readLoad(),
      this.#readBootId(),
      this.#looks.at("temperature", this.#readCpuTemperature),
      this.#readCpu(),
    ]);
    const gauges = { bootId, cpuTempCelsius: cpuTempCelsius ?? null, cpuUsagePercent: this.#cpuUsagePercent };
    return { ...disk, ...memory, ...load, ...gauges };
  }

  /** Free is what this process may still use; used is what `df` counts as used. */
  async #readDisk(): Promise<DiskReadings> {
    const { dataDirectory, readDisk = (folder: string) => statfs(folder, { bigint: true }) } = this.#deps;
    const disk = await this.#looks.at("disk", () => readDisk(dataDirectory).catch(() => undefined));
    if (disk === undefined) return DISK_UNKNOWN;
    return {
      diskTotalBytes: disk.blocks * disk.bsize,
      diskUsedBytes: (disk.blocks - disk.bfree) * disk.bsize,
      diskFreeBytes: disk.bavail * disk.bsize,
      inodeFree: disk.ffree,
      inodeTotal: disk.files,
    };
  }

  async #readMemory(): Promise<{ memUsedBytes: number; memTotalBytes: number }> {
    const text = (await this.#readProc("meminfo")) ?? "";
    const totalBytes = memoryField(text, "MemTotal") ?? totalmem();
    // Caches count as free, since the kernel gives them up; MemFree alone would show every busy server as
    // full.
    const freeBytes = memoryField(text, "MemAvailable") ?? freemem();
    return { memTotalBytes: totalBytes, memUsedBytes: Math.max(0, totalBytes - freeBytes) };
  }

  async #readLoad(): Promise<Pick<HostReadings, "loadAvg1m" | "loadAvg5m">> {
    const [one = "", five = ""] = ((await this.#readProc("loadavg")) ?? "").split(" ");
    return { loadAvg1m: finite(one), loadAvg5m: finite(five) };
  }

  /** Read until it is known: the boot id changes only with a restart, which ends this process too. */
  async #readBootId(): Promise<string | null> {
    if (this.#bootId === undefined) {
      const text = (await this.#readProc("sys/kernel/random/boot_id"))?.trim() ?? "";
      if (/^[0-9a-f-]{36}$/.test(text)) this.#bootId = text;
    }
    return this.#bootId ?? null;
  }

  async #readCpu(): Promise<void> {
    const nowMs = this.#deps.clock.steadyMs();
    if (nowMs - this.#ticksAtMs < CPU_SPAN_MIN_MS) return;
    const ticks = parseCpuTicks((await this.#readProc("stat")) ?? "");
    if (ticks === undefined) {
      this.#cpuUsagePercent = null;
      return;
    }
    this.#cpuUsagePercent = percent(ticks.busy - this.#ticks.busy, ticks.total - this.#ticks.total);
    this.#ticks = ticks;
    this.#ticksAtMs = nowMs;
  }

  #readProc(name: string): Promise<string | undefined> {
    return this.#looks.at(name, () => readFile(join(this.#procRoot, name), "utf8").catch(() => undefined));
  }
}

function memoryField(text: string, name: string): number | undefined {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text);
  return match === null ? undefined : Number(match[1]) * 1024;
}

/** user nice system idle iowait irq softirq steal; guest time is part of user time already. */
function parseCpuTicks(text: string): CpuTicks | undefined {
  const match = /^cpu\s+([\d ]+)$/m.exec(text);
  const fields = (match?.[1] ?? "").split(" ").slice(0, 8).map(Number);
  if (match === null || fields.length < 4 || fields.some((field) => !Number.isFinite(field)))
    return undefined;
  const total = fields.reduce((sum, field) => sum + field, 0);
  return { total, busy: total - (fields[3] ?? 0) - (fields[4] ?? 0) };
}

function finite(text: string): number | null {
  const value = Number(text);
  return text !== "" && Number.isFinite(value) && value >= 0 ? value : null;
}
