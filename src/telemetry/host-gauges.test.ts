// The gauges of the machine, from folders laid out like /proc and /sys.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { HOST_LOOK_MS } from "./bounded-looks.ts";
import { CpuTemperature, parseSensors } from "./cpu-temperature.ts";
import { HostGauges } from "./host-gauges.ts";

const folder = scratchFolder("telemetry-");
let made = 0;

/** Writes files below a new folder. */
function layOut(files: Record<string, string>): string {
  const root = join(folder, String(made++));
  mkdirSync(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const BOOT_ID = "0b5a1ff6-5f2c-4c42-9d2a-0d0f3f6ae9f1";
const MEMINFO = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     400 kB\n";

test("memory counts caches as free; load and boot id come from /proc (spec 2.7)", async () => {
  const procRoot = layOut({
    meminfo: MEMINFO,
    loadavg: "0.52 1.25 3.00 2/345 6789\n",
    "sys/kernel/random/boot_id": `${BOOT_ID}\n`,
  });
  const gauges = new HostGauges({
    clock: new ManualClock(),
    dataDirectory: folder,
    procRoot,
    readCpuTemperature: async () => null,
  });
  const together = [gauges.read(), gauges.read()];
  assert.equal(await together[0], await together[1]);
  const { memTotalBytes, memUsedBytes, loadAvg1m, loadAvg5m, bootId, cpuTempCelsius } = await gauges.read();
  assert.deepEqual(
    { memTotalBytes, memUsedBytes, loadAvg1m, loadAvg5m, bootId, cpuTempCelsius },
    {
      memTotalBytes: 1_024_000,
      memUsedBytes: 614_400,
      loadAvg1m: 0.52,
      loadAvg5m: 1.25,
      bootId: BOOT_ID,
      cpuTempCelsius: null,
    },
  );
});

test("processor use is that between two reads, and holds when they are too close (spec 2.7)", async () => {
  const clock = new ManualClock();
  const procRoot = layOut({ stat: "cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 1 1 1\n" });
  const gauges = new HostGauges({ clock, dataDirectory: folder, procRoot });
  assert.equal((await gauges.read()).cpuUsagePercent, 20);
  const stat = join(procRoot, "stat");
  writeFileSync(stat, "cpu  175 0 100 720 105 0 0 0 50 0\n");
  clock.advance(199);
  assert.equal((await gauges.read()).cpuUsagePercent, 20);
  clock.advance(1);
  assert.equal((await gauges.read()).cpuUsagePercent, 75);
  clock.advance(5_000);
  assert.equal((await gauges.read()).cpuUsagePercent, 0); // nothing has moved: no division by zero
  writeFileSync(stat, "garbage\n");
  clock.advance(5_000);
  assert.equal((await gauges.read()).cpuUsagePercent, null);
});

test("the disk is that of the data folder, and what cannot be read is null, never a made-up 0 (spec 2.7, D12)", async () => {
  const deps = { clock: new ManualClock(), procRoot: join(folder, "none") };
  const readings = await new HostGauges({ ...deps, dataDirectory: folder }).read();
  const disk = await statfs(folder, { bigint: true });
  assert.equal(readings.diskTotalBytes, disk.blocks * disk.bsize);
  assert.ok((readings.diskFreeBytes ?? 0n) > 0n && (readings.diskUsedBytes ?? 0n) > 0n);
  assert.equal(readings.inodeTotal, disk.files);
  assert.ok(readings.memTotalBytes > 0);
  assert.deepEqual([readings.loadAvg1m, readings.bootId, readings.cpuUsagePercent], [null, null, null]);
  const gone = await new HostGauges({ ...deps, dataDirectory: join(folder, "none") }).read();
  assert.deepEqual([gone.diskTotalBytes, gone.diskFreeBytes], [null, null]);
  assert.deepEqual([gone.inodeFree, gone.inodeTotal], [null, null]);
});

test("a look at the machine that hangs keeps no poll for longer than a time, and begins no second one", async () => {
  const clock = new ManualClock();
  const disk = await statfs(folder, { bigint: true });
  const hung = { disk: Promise.withResolvers<typeof disk>(), temperature: Promise.withResolvers<number>() };
  let looks = 0;
  const gauges = new HostGauges({
    clock,
    dataDirectory: folder,
    readDisk: async () => (looks++ > 0 ? disk : hung.disk.promise),
    readCpuTemperature: () => hung.temperature.promise,
  });
  const first = gauges.read();
  clock.advance(HOST_LOOK_MS);
  // The next poll does not wait once more.
  for (const { diskFreeBytes, cpuTempCelsius } of [await first, await gauges.read()])
    assert.deepEqual([diskFreeBytes, cpuTempCelsius], [null, null]);
  assert.equal(looks, 1);
  hung.disk.resolve(disk);
  hung.temperature.resolve(41);
  await new Promise(setImmediate);
  const { diskTotalBytes, cpuTempCelsius } = await gauges.read();
  assert.deepEqual([diskTotalBytes, cpuTempCelsius], [disk.blocks * disk.bsize, 41]);
  assert.equal(looks, 2);
});

const noSensors = (): Promise<string> => Promise.reject(new Error("ENOENT"));

async function temperature(files: Record<string, string>, runSensors = noSensors): Promise<number | null> {
  return new CpuTemperature({ clock: new ManualClock(), sysRoot: layOut(files), runSensors }).read();
}

const HWMON = "class/hwmon";

test("tier 1 takes a known driver and its preferred label, whatever the order (spec 8)", async () => {
  const core = {
    [`${HWMON}/hwmon0/name`]: "nvme\n",
    [`${HWMON}/hwmon0/temp1_input`]: "31000\n",
    [`${HWMON}/hwmon0/temp1_label`]: "Package id 0\n",
    [`${HWMON}/hwmon10/name`]: "coretemp\n",
    [`${HWMON}/hwmon10/temp2_input`]: "40000\n",
    [`${HWMON}/hwmon10/temp2_label`]: "Core 0\n",
    [`${HWMON}/hwmon10/temp10_input`]: "45500\n",
    [`${HWMON}/hwmon10/temp10_label`]: "Package id 0\n",
  };
  assert.equal(await temperature(core), 45.5);
  for (const [driver, label] of [
    ["k10temp", "Tctl"],
    ["zenpower", "Tdie"],
    ["cpu_thermal", "CPU"],
  ]) {
    const files = {
      [`${HWMON}/hwmon0/name`]: `${driver}\n`,
      [`${HWMON}/hwmon0/temp1_input`]: "50000\n",
      [`${HWMON}/hwmon0/temp1_label`]: "Tccd1\n",
      [`${HWMON}/hwmon0/temp3_input`]: "61250\n",
      [`${HWMON}/hwmon0/temp3_label`]: `${label}\n`,
    };
    assert.equal(await temperature(files), 61.25);
  }
});

test("tier 1 takes the first input where there is no label, and passes over broken ones", async () => {
  const files = {
    [`${HWMON}/hwmon0/name`]: "cpu_thermal\n",
    [`${HWMON}/hwmon0/temp1_input`]: "garbage\n",
    [`${HWMON}/hwmon0/temp2_input`]: "999999\n",
    [`${HWMON}/hwmon0/temp10_input`]: "48000\n",
    [`${HWMON}/hwmon0/temp3_input`]: "47123\n",
    [`${HWMON}/hwmon0/temp3_crit`]: "90000\n",
  };
  assert.equal(await temperature(files), 47.123);
});

test("tier 2 takes a thermal zone of a known type, when tier 1 has nothing (spec 8)", async () => {
  for (const type of ["bcm2712", "bcm2712_thermal", "cpu-thermal", "x86_pkg_temp"]) {
    const files = {
      "class/thermal/thermal_zone0/type": "acpitz\n",
      "class/thermal/thermal_zone0/temp": "20000\n",
      "class/thermal/thermal_zone2/type": `${type}\n`,
      "class/thermal/thermal_zone2/temp": "-5000\n",
      [`${HWMON}/hwmon0/name`]: "nvme\n",
      [`${HWMON}/hwmon0/temp1_input`]: "31000\n",
    };
    assert.equal(await temperature(files), -5);
  }
  const tierOne = {
    [`${HWMON}/hwmon0/name`]: "k10temp\n",
    [`${HWMON}/hwmon0/temp1_input`]: "31000\n",
    "class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
    "class/thermal/thermal_zone0/temp": "20000\n",
  };
  assert.equal(await temperature(tierOne), 31);
});

const SENSORS = {
  "nvme-pci-0100": { Adapter: "PCI adapter", Composite: { temp1_input: 36.85, temp1_max: 80 } },
  "k10temp-pci-00c3": {
    Adapter: "PCI adapter",
    Tccd1: { temp3_input: 40 },
    Tctl: { temp1_input: 52.5, temp1_crit: 95 },
  },
};

test("tier 3 reads sensors -j: a known chip, else a known label, else nothing (spec 8)", async () => {
  assert.equal(await temperature({}, async () => JSON.stringify(SENSORS)), 52.5);
  assert.equal(parseSensors(JSON.stringify({ "acpi-0": { CPU: { temp1_input: 44 } } })), 44);
  assert.equal(parseSensors(JSON.stringify({ "nvme-pci-0100": SENSORS["nvme-pci-0100"] })), undefined);
  for (const odd of [
    "null",
    "[]",
    "1",
    '{"k10temp-x":null}',
    '{"k10temp-x":{"Tctl":{"temp1_input":"52"}}}',
    '{"k10temp-x":{"Tctl":{"temp1_input":1e9}}}',
  ]) {
    assert.equal(parseSensors(odd), undefined);
  }
});

test("an answer of sensors holds for 4 seconds, so that frequent polls do not start a process each", async () => {
  const clock = new ManualClock();
  let celsius = 50;
  const runSensors = async (): Promise<string> =>
    JSON.stringify({ "k10temp-x": { Tctl: { temp1_input: celsius } } });
  const unit = new CpuTemperature({ clock, sysRoot: layOut({}), runSensors });
  assert.equal(await unit.read(), 50);
  celsius = 60;
  clock.advance(3_999);
  assert.equal(await unit.read(), 50);
  clock.advance(1);
  assert.equal(await unit.read(), 60);
});

test("where nobody knows the temperature it is null, and sensors is not started at every poll (D12)", async () => {
  for (const output of [noSensors, async () => "no json", async () => "{}"]) {
    const clock = new ManualClock();
    let runs = 0;
    const unit = new CpuTemperature({
      clock,
      sysRoot: layOut({}),
      runSensors: () => {
        runs++;
        return output();
      },
    });
    for (let poll = 0; poll < 10; poll++) {
      assert.equal(await unit.read(), null);
      clock.advance(5_000);
    }
    assert.equal(runs, 1);
    clock.advance(600_000);
    await unit.read();
    assert.equal(runs, 2);
  }
});
