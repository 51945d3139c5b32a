// A real PostgreSQL server for tests, in a temporary folder and on a free port, removed afterwards.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";
import { freePort } from "./free-ports.ts";
import { childrenOf } from "./server-process.ts";
import { until } from "./until.ts";

/** Options of a server. */
export interface PostgresServerOptions {
  readonly maxConnections?: number;
  /** Lines of postgresql.conf. */
  readonly settings?: readonly string[];
}

const ENVIRONMENT = { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" };
const PASSWORD = "a password that no log may hold";

/** In a test run, whose temporary folder goes with it, the files that its first server has got from initdb. */
const MADE = process.env["GROVE_TEST_DISK"] === undefined ? undefined : join(tmpdir(), "postgres-files");

/** The folder of PostgreSQL's programs; undefined where it is not installed. */
export function postgresPrograms(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    ...versions.map((version) => join(debian, version, "bin")),
  ];
  const needed = ["initdb", "postgres", "psql"];
  return folders.find((folder) => needed.every((program) => existsSync(join(folder, program))));
}

/** Value for `skip` of a test: false with PostgreSQL, and in CI, where the test must fail without it. */
export function withoutPostgres(): string | false {
  const isCi = (process.env["CI"] ?? "") !== "";
  return postgresPrograms() === undefined && !isCi ? "PostgreSQL is not installed" : false;
}

/**
 * Starts a server before a test file's tests and ends it after them, where there is PostgreSQL. Returns the value
 * for `skip` of tests that need it.
 */
export function postgresOfFile(
  use: (server: PostgresServer) => void,
  options: PostgresServerOptions = {},
): string | false {
  const skip = withoutPostgres();
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    if (skip === false) use(await startPostgres((end) => ends.push(end), options));
  });
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return skip;
}

/** Signals of which only the process hears that gets them. */
const FOR_ALL: ReadonlySet<NodeJS.Signals> = new Set(["SIGSTOP", "SIGCONT", "SIGKILL"]);

/** A database server. */
export class PostgresServer {
  readonly port: number;
  /** Folder of its Unix socket, which lets every user in; TCP requires the password. */
  readonly socketFolder: string;
  /** Password of the user `grove`. */
  readonly password: string = PASSWORD;
  readonly #programs: string;
  readonly #as = unprivileged();
  #child: ChildProcess | undefined;
  #databases = 0;
  #strategy: string | undefined;

  constructor(programs: string, folder: string, port: number) {
    this.#programs = programs;
    this.socketFolder = folder;
    this.port = port;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Creates the server's files, in a test run as a copy of those that its first server has got. */
  async make(options: PostgresServerOptions): Promise<void> {
    const folder = this.socketFolder;
    if (this.#as !== undefined) await chown(folder, this.#as.uid, this.#as.gid);
    const passwordFile = join(folder, "password");
    await writeFile(passwordFile, `${PASSWORD}\n`);
    await chmod(passwordFile, 0o644);
    if (MADE !== undefined && existsSync(MADE)) await copyFolder(MADE, this.#data);
    else {
      const init = ["-D", this.#data, "-U", "grove", "--pwfile", passwordFile, "-E", "UTF8", "--no-sync"];
      await this.#run("initdb", [...init, "--auth-local=trust", "--auth-host=scram-sha-256"]);
      if (MADE !== undefined) await keepFor(this.#data, MADE);
    }
    const lines = [
      "listen_addresses = '127.0.0.1'",
      `port = ${this.port}`,
      `unix_socket_directories = '${folder}'`,
      `max_connections = ${options.maxConnections ?? 50}`,
      "fsync = off",
      "shared_buffers = '16MB'",
      ...(options.settings ?? []),
    ];
    await writeFile(join(this.#data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
  }

  /** Creates its files as a copy of a running server, which it then follows under a name. */
  async makeStandby(primary: PostgresServer, name: string): Promise<void> {
    const folder = this.socketFolder;
    if (this.#as !== undefined) await chown(folder, this.#as.uid, this.#as.gid);
    const from = ["-h", primary.socketFolder, "-p", String(primary.port), "-U", "grove"];
    await this.#run("pg_basebackup", [...from, "-D", this.#data, "--checkpoint=fast", "--no-sync"]);
    const conninfo = `host=${primary.socketFolder} port=${primary.port} user=grove application_name=${name}`;
    const lines = [
      "listen_addresses = '127.0.0.1'",
      `port = ${this.port}`,
      `unix_socket_directories = '${folder}'`,
      "fsync = off",
      "shared_buffers = '16MB'",
      `primary_conninfo = '${conninfo}'`,
    ];
    await writeFile(join(this.#data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
    await writeFile(join(this.#data, "standby.signal"), "");
  }

  /** Starts it unless it runs, again on the same port; resolves when it answers. */
  async start(): Promise<void> {
    const child = this.#isRunning ? (this.#child as ChildProcess) : this.#spawn();
    this.#child = child;
    for (let tries = 0; tries < 600; tries++) {
      const isReady = await this.sql("postgres", "SELECT 1").then(
        () => true,
        () => false,
      );
      if (isReady) return;
      if (!this.#isRunning) throw new Error("PostgreSQL did not start");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("PostgreSQL does not answer");
  }

  #spawn(): ChildProcess {
    const options = { ...this.#as, env: ENVIRONMENT, cwd: this.socketFolder, stdio: "ignore" } as const;
    return spawn(join(this.#programs, "postgres"), ["-D", this.#data], options);
  }

  get #isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Stops it: "fast" cuts connections and keeps all data, "immediate" is like a power cut. */
  async stop(mode: "fast" | "immediate" = "fast"): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.#isRunning) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    this.signal("SIGCONT");
    this.signal(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await exited;
  }

  /** Kills all of its processes, stopped or not. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.#isRunning) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    this.signal("SIGKILL");
    await exited;
  }

  /** Sends a signal to the server, and to the processes of its connections where they would not follow it. */
  signal(name: NodeJS.Signals): void {
    const pids = FOR_ALL.has(name) ? [this.pid, ...childrenOf(this.pid)] : [this.pid];
    for (const pid of pids) {
      try {
        process.kill(pid, name);
      } catch (error) {
        // A connection's process may have ended since the list was made.
        if (pid === this.pid || (error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  }

  /** Runs SQL in a database, and returns what psql prints. */
  sql(database: string, text: string): Promise<string> {
    const at = ["-h", this.socketFolder, "-p", String(this.port), "-U", "grove", "-d", database];
    return this.#run("psql", [...at, "-XAtqc", text]);
  }

  /** Makes an empty database, and returns its name. */
  async createDatabase(): Promise<string> {
    const name = `grove_${++this.#databases}`;
    // Through its log, as newer versions do by default, it takes twice as long.
    this.#strategy ??= (await this.#version()) < 150_000 ? "" : " STRATEGY FILE_COPY";
    await this.sql("postgres", `CREATE DATABASE ${name} TEMPLATE template0${this.#strategy}`);
    return name;
  }

  /** The URL of a database over the Unix socket. */
  url(database: string): string {
    return `postgres://grove@/${database}?host=${encodeURIComponent(this.socketFolder)}&port=${this.port}`;
  }

  async #version(): Promise<number> {
    return Number(await this.sql("postgres", "SHOW server_version_num"));
  }

  get #data(): string {
    return join(this.socketFolder, "data");
  }

  async #run(program: string, args: readonly string[]): Promise<string> {
    const options = { ...this.#as, env: ENVIRONMENT, cwd: this.socketFolder };
    return (await promisify(execFile)(join(this.#programs, program), args, options)).stdout;
  }
}

/**
 * Creates and starts a server that follows another, which from then on acknowledges only what both have. It
 * may take the port of one that has ended.
 */
export async function startSynchronousStandby(
  primary: PostgresServer,
  cleanUp: (end: () => Promise<void>) => void,
  port?: number,
): Promise<PostgresServer> {
  const programs = postgresPrograms();
  if (programs === undefined) throw new Error("PostgreSQL is not installed");
  const folder = await mkdtemp(join(tmpdir(), "pg-"));
  const standby = new PostgresServer(programs, folder, port ?? (await freePort()));
  cleanUp(async () => {
    await standby.stop("immediate");
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  await standby.makeStandby(primary, "second");
  await standby.start();
  await primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'second'");
  await primary.sql("postgres", "SELECT pg_reload_conf()");
  await until(
    async () =>
      (await primary.sql("postgres", "SELECT sync_state FROM pg_stat_replication")).trim() === "sync",
    "the synchronous standby",
  );
  return standby;
}

/** Creates and starts a server; `cleanUp` receives its stop function. Throws without PostgreSQL. */
export async function startPostgres(
  cleanUp: (end: () => Promise<void>) => void,
  options: PostgresServerOptions = {},
): Promise<PostgresServer> {
  const programs = postgresPrograms();
  if (programs === undefined) throw new Error("PostgreSQL is not installed");
  const folder = await mkdtemp(join(tmpdir(), "pg-"));
  const server = new PostgresServer(programs, folder, await freePort());
  cleanUp(async () => {
    await server.stop("immediate");
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  await server.make(options);
  await server.start();
  return server;
}

/** Copies with owners and modes. */
async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", from, to]);
}

/** Keeps a copy, unless another process was sooner. */
async function keepFor(folder: string, place: string): Promise<void> {
  const copy = await mkdtemp(`${place}-`);
  await copyFolder(folder, join(copy, "data"));
  await rename(join(copy, "data"), place).catch(() => undefined);
  await rm(copy, { recursive: true, force: true });
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = users.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("root cannot run PostgreSQL, and there is nobody else");
}
