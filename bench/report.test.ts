// Tests of a run's output: the table for people and the document for programs.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { amount, figure, table } from "./report.ts";

const RUN = fileURLToPath(new URL("./run.ts", import.meta.url));
const run = promisify(execFile);

test("a ratio shows two decimals, a figure with a unit three digits or whole and grouped", () => {
  assert.equal(figure(1.505, "ratio"), "1.50");
  assert.equal(figure(1.1, "cost ratio"), "1.10");
  assert.equal(figure(3.1849, "µs"), "3.18 µs");
  assert.equal(amount(99.96), "100");
  assert.equal(amount(12_345.6), "12,346");
});

test("the table says bar and verdict of each row, and of a row that failed why", () => {
  const row = { against: "x", unit: "ratio", bar: 1.5, detail: "" };
  const lines = table([
    { ...row, name: "good", value: 1.5, met: true },
    { ...row, name: "bad", value: 1.49, met: false },
    { ...row, name: "broken", value: null, met: false, detail: "no server" },
    { ...row, name: "dear", unit: "cost ratio", bar: 1.1, value: 1.2, met: false },
    { ...row, name: "bound", bar: 0, value: 3, met: true },
    { ...row, name: "small", against: "", unit: "MB", bar: 350, value: 300, met: true },
  ]).split("\n");
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
  assert.match(lines[2] ?? "", /good.*1\.50.*≥ 1\.5.*yes/);
  assert.match(lines[3] ?? "", /bad.*1\.49.*≥ 1\.5.*NO/);
  assert.match(lines[4] ?? "", /broken.*failed.*NO.*no server/);
  assert.match(lines[5] ?? "", /dear.*1\.20.*≤ 1\.1.*NO/);
  assert.match(lines[6] ?? "", /bound.*3\.00.*told.*yes/);
  assert.match(lines[7] ?? "", /300 MB.*< 350 MB.*yes/);
});

test("--json prints one document of machine and rows on stdout and nothing else", {
  timeout: 60_000,
}, async () => {
  const { stdout } = await run(process.execPath, [RUN, "--only", "sessions", "--json"]);
  const document = JSON.parse(stdout) as {
    machine: Record<string, unknown>;
    rows: Record<string, unknown>[];
  };
  assert.deepEqual(Object.keys(document), ["machine", "rows"]);
  assert.deepEqual(Object.keys(document.rows[0] ?? {}), ["name", "against", "value", "unit", "bar", "met"]);
  assert.equal(document.machine["command"], "npm run bench -- --only sessions --json");
  assert.equal(typeof document.rows[0]?.["value"], "number");
});

test("an unknown group, a bad number and an unknown option are refused with exit code 2", async () => {
  for (const args of [["--only", "nothing"], ["--inodes", "10"], ["--inodes", "x"], ["--fast"]]) {
    await assert.rejects(run(process.execPath, [RUN, ...args]), { code: 2, stdout: "" });
  }
});
