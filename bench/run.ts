// `npm run bench`: measures every group, or those named by --only, and prints one table of ratios.
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { groups } from "./groups.ts";
import { Lab, type LabOptions } from "./lab.ts";
import { compare } from "./measure.ts";
import { amount, describeMachine, machineLines, type TableRow, table } from "./report.ts";
import type { CostRow, Group, LimitRow, RatioRow, Row } from "./row.ts";

const USAGE = `usage: npm run bench -- [--only GROUP,…] [--inodes N] [--json] [--check]

  --only GROUP,…  only these groups: ${groups.map((group) => group.name).join(", ")}
  --inodes N      inodes of the large tree in the group "scale" (default 1000000)
  --json          print one JSON document on stdout and nothing else there
  --check         exit code 1 when a bar is not met; otherwise only when a row could not be measured
`;
const DEFAULT_INODES = 1_000_000;

interface Choices extends LabOptions {
  readonly groups: readonly Group[];
  readonly json: boolean;
  readonly check: boolean;
}

async function main(): Promise<void> {
  const choices = readChoices(process.argv.slice(2));
  if (choices === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
    return;
  }
  const command = ["npm run bench --", ...process.argv.slice(2)].join(" ").replace(/ --$/, "");
  const machine = describeMachine(command, loadavg()[0] ?? 0);
  if (!choices.json) process.stdout.write(`${machineLines(machine)}\n\n`);
  const rows: TableRow[] = [];
  for (const group of choices.groups) rows.push(...(await measureGroup(group, choices)));
  if (choices.json) {
    const results = rows.map(({ name, against, value, unit, bar, met }) => ({
      name,
      against,
      value,
      unit,
      bar,
      met,
    }));
    process.stdout.write(`${JSON.stringify({ machine, rows: results })}\n`);
  } else {
    process.stdout.write(`${table(rows)}\n`);
  }
  const isFailed = rows.some((row) => row.value === null || (choices.check && !row.met));
  process.exitCode = isFailed ? 1 : 0;
}

function readChoices(argv: readonly string[]): Choices | undefined {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        only: { type: "string", multiple: true },
        inodes: { type: "string" },
        json: { type: "boolean", default: false },
        check: { type: "boolean", default: false },
      },
    });
    const names = values.only?.flatMap((list) => list.split(","));
    const unknown = names?.filter((name) => !groups.some((group) => group.name === name)) ?? [];
    if (unknown.length > 0) throw new Error(`no such group: ${unknown.join(", ")}`);
    const inodes = Number(values.inodes ?? DEFAULT_INODES);
    if (!Number.isSafeInteger(inodes) || inodes < 20_000)
      throw new Error("--inodes takes a number from 20000 on");
    const chosen = groups.filter((group) => names?.includes(group.name) ?? true);
    return { groups: chosen, inodes, json: values.json, check: values.check };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return undefined;
  }
}

async function measureGroup(group: Group, options: LabOptions): Promise<TableRow[]> {
  const lab = new Lab(options);
  const stop = (): void => {
    void lab.close().finally(() => process.exit(130));
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const rows: TableRow[] = [];
  try {
    for (const row of group.rows(options)) {
      const start = performance.now();
      const measured = await measureRow(row, lab);
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      progress(
        `${group.name}: ${row.name}: ${measured.value?.toPrecision(3) ?? "failed"} ${measured.unit}, ${measured.detail} (${seconds} s)`,
      );
      rows.push(measured);
    }
  } finally {
    await lab.close();
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
  return rows;
}

async function measureRow(row: Row, lab: Lab): Promise<TableRow> {
  try {
    return "sides" in row ? await measureRatio(row, lab) : await measureLimit(row, lab);
  } catch (error) {
    process.stderr.write(
      `${row.name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    const reason = error instanceof Error ? error.message.split("\n", 1)[0] : String(error);
    return { ...heading(row), value: null, met: false, detail: reason ?? "" };
  }
}

async function measureRatio(row: RatioRow | CostRow, lab: Lab): Promise<TableRow> {
  const { ours, theirs } = await row.sides(lab);
  const result = await compare(ours, theirs);
  const spread = [Math.min(...result.ratios), Math.max(...result.ratios)].map((ratio) => ratio.toFixed(2));
  const unit = "cost" in row ? row.cost : row.rate;
  const note = await row.note?.(lab);
  return {
    ...heading(row),
    value: rounded(result.ratio),
    met: "cost" in row ? row.atMost === 0 || result.ratio <= row.atMost : result.ratio >= row.atLeast,
    detail: `${amount(result.ours)} against ${amount(result.theirs)} ${unit}, ${spread.join(" to ")}${note === undefined ? "" : `; ${note}`}`,
  };
}

async function measureLimit(row: LimitRow, lab: Lab): Promise<TableRow> {
  const { value, detail } = await row.measure(lab);
  const met = row.below === 0 ? value === 0 : value < row.below;
  return { ...heading(row), value: rounded(value), met, detail };
}

function heading(row: Row): Pick<TableRow, "name" | "against" | "unit" | "bar"> {
  const { name } = row;
  if ("below" in row) return { name, against: "", unit: row.unit, bar: row.below };
  if ("cost" in row) return { name, against: row.against, unit: "cost ratio", bar: row.atMost };
  return { name, against: row.against, unit: "ratio", bar: row.atLeast };
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

await main();
