// The load program of the side-by-side: built from its sources with Go, one process for each server.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Lab } from "#bench/lab.ts";
import type { Peer } from "./servers.ts";

const SOURCES = fileURLToPath(new URL("./client", import.meta.url));

/** A task of the load program; see client/main.go. */
export interface Task {
  readonly task: "makeFolder" | "put" | "get" | "create" | "read" | "stat" | "list";
  readonly folder: string;
  /** Bytes of each of the streams' files. */
  readonly bytes?: number;
  /** Each stream has a connection of its own. */
  readonly streams?: number;
  readonly files?: number;
  readonly inFlight?: number;
}

/** Runs a task and returns its seconds. Throws when it fails. */
export type Client = (task: Task) => Promise<number>;

/** Builds the program and returns its path. Throws where Go is missing. */
export async function buildClient(lab: Lab): Promise<string> {
  const program = join(await lab.folder("disk"), "client");
  execFileSync("go", ["build", "-o", program, "."], { cwd: SOURCES, stdio: ["ignore", 2, 2] });
  return program;
}

/** The version of grpc-go and of Go that it is built with. */
export function clientVersions(program: string): string {
  const lines = execFileSync("go", ["version", "-m", program], { encoding: "utf8" }).split("\n");
  const dependencies = lines.map((line) => line.trim().split("\t"));
  const versions = dependencies.flatMap(([kind, name = "", version = ""]) =>
    kind === "dep" && CLIENTS.includes(name) ? [`${name} ${version}`] : [],
  );
  return [lines[0]?.split(": ")[1] ?? "", ...versions].join(", ");
}

const CLIENTS = ["google.golang.org/grpc", "github.com/pkg/sftp", "github.com/minio/minio-go/v7"];

/** Starts the program for one server, with a connection that stays. */
export function startClient(lab: Lab, program: string, { kind, address, settings }: Peer): Client {
  const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const child = spawn(program, [kind, address, ...words], { stdio: ["pipe", "pipe", 2] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("the load program has no pipes");
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the load program ended with ${String(code)}`);
  });
  ended.catch(() => undefined);
  lab.atEnd(async () => {
    stdin.end();
    await ended.catch(() => undefined);
  });
  const lines = createInterface({ input: stdout });
  return async (task) => {
    const answered = once(lines, "line");
    stdin.write(`${JSON.stringify(task)}\n`);
    const [line] = (await Promise.race([answered, ended])) as [string];
    const answer = JSON.parse(line) as { seconds: number; error?: string };
    if (answer.error !== undefined) throw new Error(`${kind}, ${task.task}: ${answer.error}`);
    return answer.seconds;
  };
}
