// The output of `grove up`: addresses, demo users, and the next commands.
import { isAbsolute, relative, sep } from "node:path";
import { styleText } from "node:util";
import { formatBytes } from "#base/bytes.ts";
import { DISK_RESERVE_BYTES } from "#base/limits.ts";
import { shellWord } from "#base/shell-word.ts";
import type { ClusterDocument } from "./cluster-file.ts";

/** Lines for people; the stream decides whether they are coloured. */
export interface Screen {
  line(text: string): void;
}

/** The inputs of the summary. */
export interface Summary {
  readonly document: ClusterDocument;
  readonly clusterFile: string;
  readonly logFolder: string;
  /** The command of the program: "./grove" in a clone, else "grove". */
  readonly program: string;
  /** A sample folder to upload. */
  readonly sample: string;
  /** Folder that shorter paths are relative to. */
  readonly cwd: string;
}

/** A screen on a stream. */
export function screenOn(stream: NodeJS.WritableStream): Screen {
  return { line: (text) => void stream.write(`${text}\n`) };
}

const bold = (text: string): string => styleText("bold", text);
const dim = (text: string): string => styleText("dim", text);

/** The line of one process that serves. */
export function readyLine(name: string, where: string): string {
  return `  ${styleText("green", "✓")} ${name.padEnd(11)} ${where}`;
}

/** The warning that the reserve is not the specified one. */
export function reserveWarning(facts: {
  readonly freeBytes: bigint;
  readonly reserveBytes: bigint;
}): string[] {
  const text = [
    `This disk has ${formatBytes(facts.freeBytes)} free, too little for the reserve of ${formatBytes(DISK_RESERVE_BYTES)} that Grove keeps.`,
    `For this demonstration only, the reserve is ${formatBytes(facts.reserveBytes)}. A FileServer of your own never lowers it.`,
  ];
  return ["", ...text.map((line) => styleText(["bold", "yellow"], `  ! ${line}`)), ""];
}

/** The summary for the reader. */
export function summaryLines(summary: Summary): string[] {
  const { document, program } = summary;
  const path = shellWord(shortPath(summary.clusterFile, summary.cwd));
  const login = `${program} login --cluster ${path}`;
  const sample = shellWord(summary.sample);
  const width = Math.max(...document.users.map(({ email }) => email.length), 0);
  return [
    "",
    bold("The cluster runs."),
    dim(`  addresses, passwords, process ids: ${shortPath(summary.clusterFile, summary.cwd)}`),
    dim(`  logs: ${shortPath(summary.logFolder, summary.cwd)}`),
    "",
    ...(document.mock ? mockLines() : userLines(document, width)),
    "",
    `${bold("The console:")} ${document.console}`,
    dim(`  operators sign in with the administrator's password: ${document.admin_password}`),
    "",
    `${bold("The door:")} ${document.door}`,
    dim("  files in a browser: open that address and sign in"),
    dim(
      `  WebDAV is at ${document.door}/dav/; '${program} app-password create NAME' makes a password for it`,
    ),
    "",
    bold("Next, in another terminal:"),
    `  ${login}${document.mock ? " --mock alice@example.com" : ""}`,
    `  ${program} put -r ${sample}`,
    `  ${program} ls -l ${sample}`,
    `  ${program} quota`,
    "",
    dim("Ctrl-C stops everything; what is stored stays for the next start."),
  ];
}

function userLines(document: ClusterDocument, width: number): string[] {
  return [
    bold("Users and their passwords"),
    ...document.users.map(({ email, password }) => `  ${email.padEnd(width)}   ${password}`),
  ];
}

function mockLines(): string[] {
  return [
    styleText(["bold", "yellow"], "  ! Mock mode: no TLS, and a mock token makes anybody anybody."),
    dim("  a mock token is mock-jwt. followed by an e-mail address: mock-jwt.alice@example.com"),
    dim("  nobody is asked for the passwords in cluster.json, but for the operator's"),
  ];
}

/** Relative where that is shorter to read and stays below the folder. */
export function shortPath(path: string, cwd: string): string {
  const near = relative(cwd, path);
  return near === "" || near.startsWith(`..${sep}`) || near === ".." || isAbsolute(near) ? path : near;
}
