// The output of a run: the machine and versions, the table for people, the document for programs.
import { execFileSync } from "node:child_process";
import { readFileSync, statfsSync } from "node:fs";
import { availableParallelism, cpus, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { diskFolder, memoryFolder } from "./lab.ts";
import type { Result } from "./row.ts";

/** The origin of the figures; without it they mean nothing. */
export interface Machine {
  readonly command: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gib: number;
  readonly kernel: string;
  readonly disk: string;
  readonly memory_folder: string;
  readonly load_average: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly commit: string;
  readonly time: string;
}

const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: "ext4",
  0x58465342: "xfs",
  0x9123683e: "btrfs",
  0x2fc12fc1: "zfs",
  0x01021994: "tmpfs",
  0x794c7630: "overlayfs",
};

/** Describes this machine and its versions. `loadAverage` is the one before the run began. */
export function describeMachine(command: string, loadAverage: number): Machine {
  const [cpu] = cpus();
  return {
    command,
    cpu: cpu?.model ?? "unknown",
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    kernel: `${process.platform} ${release()}`,
    disk: folderWithFileSystem(diskFolder()),
    memory_folder: folderWithFileSystem(memoryFolder()),
    load_average: Math.round(loadAverage * 100) / 100,
    versions: {
      node: process.versions.node,
      nghttp2: process.versions["nghttp2"] ?? "",
      openssl: process.versions["openssl"] ?? "",
      sqlite: process.versions["sqlite"] ?? "",
      grove: packageVersion("."),
      "@grpc/grpc-js": packageVersion("node_modules/@grpc/grpc-js"),
      "@bufbuild/protobuf": packageVersion("node_modules/@bufbuild/protobuf"),
    },
    commit: commitOfClone(),
    time: new Date().toISOString(),
  };
}

/** The two lines above the table. */
export function machineLines(machine: Machine): string {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${machine.command}   (${machine.time}, commit ${machine.commit})`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB, ${machine.kernel}, load ${machine.load_average} at the start`,
    `disk ${machine.disk}, memory ${machine.memory_folder}`,
    versions.join(", "),
  ].join("\n");
}

/** A result with its explanation. */
export interface TableRow extends Result {
  /** Such as "1,870 against 690 MiB/s, 2.5 to 2.9". */
  readonly detail: string;
}

/** The table for people in Markdown, ready for the documentation. */
export function table(rows: readonly TableRow[]): string {
  const cells = rows.map((row) => [
    row.name,
    row.against,
    row.value === null ? "failed" : figure(row.value, row.unit),
    barOf(row),
    row.met ? "yes" : "NO",
    row.detail,
  ]);
  const all = [
    ["Row", "Against", "Measured", "Bar", "Met", "Medians, and the spread of the rounds"],
    ...cells,
  ];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0))) ?? [];
  const lines = all.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  lines.splice(1, 0, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  return lines.join("\n");
}

function barOf({ bar, unit }: Result): string {
  if (bar === 0 && unit.endsWith("ratio")) return "told";
  if (unit === "ratio") return `≥ ${bar}`;
  if (unit === "cost ratio") return `≤ ${bar}`;
  return `${bar === 0 ? "" : "< "}${bar} ${unit}`;
}

/** A value with its significant digits. */
export function figure(value: number, unit: string): string {
  if (unit === "ratio" || unit === "cost ratio") return value.toFixed(2);
  return `${amount(value)} ${unit}`;
}

/** A plain amount: whole and grouped from 100 on, else with three digits. */
export function amount(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}

function folderWithFileSystem(folder: string): string {
  const { type } = statfsSync(folder);
  return `${folder} (${FILE_SYSTEMS[type] ?? `file system 0x${type.toString(16)}`})`;
}

function packageVersion(folder: string): string {
  const path = fileURLToPath(new URL(`../${folder}/package.json`, import.meta.url));
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}

function commitOfClone(): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}
