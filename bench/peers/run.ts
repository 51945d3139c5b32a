// `npm run bench:peers`: Grove side by side with other people's servers, by other people's clients.
import { loadavg } from "node:os";
import { Lab } from "#bench/lab.ts";
import { median } from "#bench/measure.ts";
import { processorMsOfTree } from "#bench/processor-time.ts";
import { amount, describeMachine, machineLines } from "#bench/report.ts";
import { buildClient, type Client, clientVersions, startClient, type Task } from "./client.ts";
import { type Peer, SERVERS } from "./servers.ts";

const ROUNDS = 3;
const MIB = 1_048_576;
const LARGE_MIB = 512;
const STREAMS = 4;
const FILES = 5_000;
const IN_FLIGHT = 32;

/** One column: what is measured, and what of it is shown. */
interface Column {
  readonly head: string;
  readonly step: string;
  readonly figure: "rate" | "processor" | "ms";
}

const COLUMNS: readonly Column[] = [
  { head: "up MiB/s", step: "up", figure: "rate" },
  { head: "s/GiB", step: "up", figure: "processor" },
  { head: "down", step: "down", figure: "rate" },
  { head: "s/GiB", step: "down", figure: "processor" },
  { head: "up, 4 streams", step: "up 4", figure: "rate" },
  { head: "down, 4", step: "down 4", figure: "rate" },
  { head: "4 KiB put/s", step: "create", figure: "rate" },
  { head: "µs", step: "create", figure: "processor" },
  { head: "get/s", step: "read", figure: "rate" },
  { head: "µs", step: "read", figure: "processor" },
  { head: "stat/s", step: "stat", figure: "rate" },
  { head: "µs", step: "stat", figure: "processor" },
  { head: "list 5,000 ms", step: "list", figure: "ms" },
];

/** A measured step: its amount of work in units of the rate, and the processor time's unit. */
interface Step {
  readonly name: string;
  readonly task: Task;
  readonly amount: number;
  /** Processor time in ms becomes s/GiB or µs a call. */
  readonly perUnit: number;
}

function stepsOf(round: number): Step[] {
  const large = { folder: "large", bytes: LARGE_MIB * MIB, streams: 1 };
  const split = { ...large, bytes: (LARGE_MIB * MIB) / STREAMS, streams: STREAMS };
  const small = { folder: `small-${round}`, files: FILES, inFlight: IN_FLIGHT };
  const bytes = { amount: LARGE_MIB, perUnit: 1_024 / 1_000 };
  const calls = { amount: FILES, perUnit: 1_000 };
  return [
    { name: "up", task: { ...large, task: "put" }, ...bytes },
    { name: "down", task: { ...large, task: "get" }, ...bytes },
    { name: "up 4", task: { ...split, task: "put" }, ...bytes },
    { name: "down 4", task: { ...split, task: "get" }, ...bytes },
    { name: "create", task: { ...small, task: "create" }, ...calls },
    { name: "read", task: { ...small, task: "read" }, ...calls },
    { name: "stat", task: { ...small, task: "stat" }, ...calls },
    { name: "list", task: { ...small, task: "list" }, amount: 1, perUnit: 1 },
  ];
}

interface Measured {
  readonly peer: Peer;
  readonly client: Client;
  /** Figures of all rounds by step and kind. */
  readonly figures: Map<string, number[]>;
}

async function main(): Promise<void> {
  const machine = machineLines(describeMachine("npm run bench:peers", loadavg()[0] ?? 0));
  const lab = new Lab({ inodes: 0 });
  const stop = (): void => void lab.close().finally(() => process.exit(130));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    const program = await buildClient(lab);
    const warm = await lab.folder("memory");
    await lab.warm(warm, SERVERS.length * 2 * LARGE_MIB * MIB);
    const all = await startAll(lab, program);
    // The first round warms: it is measured and not kept.
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const one of all) await measure(one, round);
    }
    process.stdout.write(`${machine}\nclient: ${clientVersions(program)}\n`);
    for (const { peer } of all) process.stdout.write(`${peer.name}: ${peer.version}\n`);
    process.stdout.write(`\n${table(all)}\n`);
  } finally {
    await lab.close();
  }
}

/** Starts all servers that are installed here; the others are named with the reason. */
async function startAll(lab: Lab, program: string): Promise<Measured[]> {
  const all: Measured[] = [];
  for (const start of SERVERS) {
    try {
      const peer = await start(lab);
      const client = startClient(lab, program, peer);
      await client({ task: "makeFolder", folder: "large" });
      all.push({ peer, client, figures: new Map() });
    } catch (error) {
      process.stderr.write(`left out: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  }
  return all;
}

async function measure({ peer, client, figures }: Measured, round: number): Promise<void> {
  await client({ task: "makeFolder", folder: `small-${round}` });
  for (const step of stepsOf(round)) {
    const before = processorMsOfTree(peer.pid);
    const seconds = await client(step.task);
    const processorMs = processorMsOfTree(peer.pid) - before;
    if (round === 0) continue;
    keep(figures, `${step.name} rate`, step.amount / seconds);
    keep(figures, `${step.name} processor`, (processorMs * step.perUnit) / step.amount);
    keep(figures, `${step.name} ms`, seconds * 1_000);
  }
  process.stderr.write(`${peer.name}: round ${round}\n`);
}

function keep(figures: Map<string, number[]>, name: string, value: number): void {
  figures.set(name, [...(figures.get(name) ?? []), value]);
}

function table(all: readonly Measured[]): string {
  const lines = all.map(({ peer, figures }) => [
    peer.name,
    ...COLUMNS.map(({ step, figure }) => shown(median(figures.get(`${step} ${figure}`) ?? []), figure, step)),
  ]);
  const heads = ["", ...COLUMNS.map(({ head }) => head)];
  return [heads, heads.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function shown(value: number, figure: Column["figure"], step: string): string {
  const isSeconds = figure === "processor" && (step === "up" || step === "down");
  return isSeconds ? value.toFixed(2) : amount(Math.round(value));
}

await main();
