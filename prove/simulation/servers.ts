// The servers of the simulated cluster: the product's own start functions, each in a process that can be
// stopped, killed or cloned.

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { type RunningFileServer, startFileServer } from "#fileserver/process/file-server.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { openKnownNodesFile } from "#metaserver/process/known-nodes-file.ts";
import { type RunningMetaServer, startMetaServer } from "#metaserver/process/meta-server.ts";
import { openTicketSigner } from "#metaserver/process/ticket-signer.ts";
import { openClusterIdFile } from "#security/authority/cluster-id-file.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { Heard } from "./heard.ts";
import { type Network, network } from "./network.ts";
import { setDatabasesFull } from "./platform/database.ts";
import { type Scheduler, type SimulatedProcess, simulation } from "./scheduler.ts";

const STEADY_START_MS = 1_000;
export const ADMIN = "admin@example.com";
const IDENTITY = { SVC_AUTH_MOCK: "1", SVC_ADMIN_EMAIL: ADMIN };
const START_LIMIT_MS = 120_000;

/** The clocks of a process's machine. */
function clockOf(process: SimulatedProcess, scheduler: Scheduler): Clock {
  const steadyMs = (): number => STEADY_START_MS + scheduler.nowMs;
  return {
    wallMs: () => scheduler.wallMs(process),
    steadyMs,
    bootMs: steadyMs,
    after: (delayMs, callback) => scheduler.after(delayMs, callback, process),
    every(intervalMs, callback) {
      let cancel: () => void = () => undefined;
      const arm = (): void => {
        cancel = scheduler.after(
          intervalMs,
          () => {
            arm();
            callback();
          },
          process,
        );
      };
      arm();
      return () => cancel();
    },
  };
}

/** Errors and warnings of the servers go into the trace: they must be the same for the same seed. */
function tracingLog(name: string, scheduler: Scheduler): Logger {
  const tell =
    (level: string) =>
    (event: string, fields: Readonly<Record<string, unknown>> = {}): void =>
      scheduler.trace(
        name,
        `${level} ${event} ${String(fields["reason"] ?? "")} ${String(fields["error"] ?? "").slice(0, 120)}`,
      );
  return { ...silentLogger, info: tell("info"), warn: tell("warn"), error: tell("error") };
}

abstract class Server<Running> {
  readonly name: string;
  readonly host: string;
  readonly scheduler: Scheduler = simulation();
  readonly network: Network = network();
  process: SimulatedProcess;
  running: Running | undefined;
  startedAtMs = 0;
  starts = 0;

  constructor(name: string, host: string) {
    this.name = name;
    this.host = host;
    this.process = this.scheduler.spawn(name, host);
  }

  /** Starts it; resolves when it serves. */
  async start(): Promise<void> {
    this.scheduler.host(this.host).isDown = false;
    this.process = this.scheduler.spawn(`${this.name}#${++this.starts}`, this.host);
    const { process } = this;
    const running = await this.scheduler.runUntil(
      this.scheduler.within(process, () => this.open(process)),
      START_LIMIT_MS,
    );
    this.running = running;
    this.startedAtMs = this.scheduler.nowMs;
  }

  protected abstract open(process: SimulatedProcess): Promise<Running>;

  /** Kills the process; silently when its machine goes with it. */
  kill(isSilent: boolean): void {
    this.scheduler.trace("kill", `${this.name}${isSilent ? " with its machine" : ""}`);
    this.running = undefined;
    abandon(this.process, isSilent);
    if (isSilent) this.scheduler.host(this.host).isDown = true;
  }

  /**
   * Reads the running server as a part of its process, so that later work of the reading, such as the end of
   * a snapshot, dies with it. Undefined while it does not run.
   */
  look<T>(read: (running: Running) => T): T | undefined {
    const { running } = this;
    return running === undefined ? undefined : this.scheduler.within(this.process, () => read(running));
  }

  /** True while it runs, or starts. */
  get isUp(): boolean {
    return this.running !== undefined;
  }
}

/** The host on which a node taken for dead goes on. */
export const zombieHost = (host: string): string => `${host}-before`;

function abandon(process: SimulatedProcess, isSilent: boolean): void {
  process.isAlive = false;
  network().died(process, isSilent);
  for (const belonging of process.belongings) belonging.abandon();
  process.belongings.clear();
}

/** Parts of a MetaServer. */
interface Meta {
  readonly server: RunningMetaServer;
  readonly directory: Directory;
}

/** The MetaServer and its store. */
export class SimulatedMetaServer extends Server<Meta> {
  readonly folder: string;
  /** Calls that its store has accepted from the nodes, over all its starts. */
  readonly heard = new Heard();
  static readonly PORT = 50_000;

  constructor(host: string, folder: string) {
    super("meta", host);
    this.folder = folder;
  }

  get address(): string {
    return `${this.host}:${SimulatedMetaServer.PORT}`;
  }

  get directory(): Directory | undefined {
    return this.running?.directory;
  }

  protected override async open(process: SimulatedProcess): Promise<Meta> {
    const clock = clockOf(process, this.scheduler);
    const log = tracingLog(this.name, this.scheduler);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const idFile = await openClusterIdFile(this.folder);
    const knownNodes = await openKnownNodesFile(this.folder);
    const url = `sqlite:${join(this.folder, "metadata.db")}`;
    const directory = await openDirectory(url, { clock, clusterId: idFile.clusterId });
    const server = await startMetaServer({
      directory: this.heard.listenIn(directory),
      tokenVerifier: createTokenVerifier({ ...readIdentitySettings(IDENTITY), mock: true, clock }),
      rememberCluster: (clusterId) => idFile.remember(clusterId),
      knownNodes,
      audit: () => undefined,
      clock,
      log,
      listen: { host: this.host, port: SimulatedMetaServer.PORT },
      mock: true,
      reflection: false,
      ticketSigner: await openTicketSigner(this.folder, { clock, random: systemRandom }),
      random: systemRandom,
    });
    return { server, directory };
  }

  /** Keeps the store as it is now. */
  backUp(): void {
    rmSync(this.#copy, { recursive: true, force: true });
    cpSync(join(this.folder), this.#copy, { recursive: true });
  }

  /** Removes the store while the server is down, or puts the older copy back. */
  loseStore(hasCopy: boolean): void {
    this.scheduler.trace("store", hasCopy ? "restored from an older copy" : "lost");
    this.heard.forgetHolders();
    for (const file of ["metadata.db", "metadata.db-wal", "metadata.db-shm"]) {
      rmSync(join(this.folder, file), { force: true });
      if (hasCopy && file !== "metadata.db-shm")
        cpSync(join(this.#copy, file), join(this.folder, file), { force: true, errorOnExist: false });
    }
  }

  get #copy(): string {
    return `${this.folder}-copy`;
  }
}

/** A FileServer and its data. */
export class SimulatedFileServer extends Server<RunningFileServer> {
  readonly id: string;
  readonly folder: string;
  readonly meta: string;
  readonly disk: { readonly totalBytes: bigint; freeBytes: bigint } = {
    totalBytes: 2n ** 42n,
    freeBytes: 2n ** 41n,
  };
  /** Processes of this node whose place another has taken. */
  readonly zombies: { readonly process: SimulatedProcess; readonly running: RunningFileServer }[] = [];
  static readonly PORT = 50_051;

  constructor(id: string, host: string, folder: string, meta: string) {
    super(id, host);
    this.id = id;
    this.folder = folder;
    this.meta = meta;
  }

  get address(): string {
    return `${this.host}:${SimulatedFileServer.PORT}`;
  }

  protected override open(process: SimulatedProcess): Promise<RunningFileServer> {
    const clock = clockOf(process, this.scheduler);
    const log = tracingLog(this.name, this.scheduler);
    return startFileServer(
      {
        dataFolder: this.data,
        id: this.id,
        name: this.id,
        listen: { host: this.host, port: SimulatedFileServer.PORT },
        metricsPort: 1,
        advertise: undefined,
        metaservers: [this.meta],
        reserveBytes: 1_048_576n,
        tls: undefined,
        reflection: false,
        passwordPath: false,
        identity: readIdentitySettings(IDENTITY),
        metricsToken: undefined,
        limits: { registerPerMinute: 10_000 },
      },
      {
        log,
        clock,
        random: process.random,
        diskSpace: () => {
          const isFull = this.scheduler.host(this.host).isDiskFull;
          return isFull ? { ...this.disk, freeBytes: 0n } : { ...this.disk };
        },
      },
    );
  }

  get data(): string {
    return `${this.folder}-${this.#copies}`;
  }

  #copies = 0;

  /** Fills the disk of its machine, or makes room again. */
  setDiskFull(isFull: boolean): void {
    this.scheduler.trace("disk", `${this.id} ${isFull ? "full" : "has room"}`);
    this.scheduler.host(this.host).isDiskFull = isFull;
    if (this.process.isAlive) setDatabasesFull(this.process, isFull);
  }

  /** Starts another process on a copy of the data; this one goes on on another host without noticing. */
  async clone(): Promise<void> {
    this.scheduler.trace("clone", this.id);
    const { process, running } = this;
    if (running === undefined) throw new Error("only what runs can be cloned");
    this.zombies.push({ process, running });
    const from = this.data;
    this.#copies++;
    cpSync(from, this.data, { recursive: true, filter: (path) => !/\.lock$|-shm$/.test(path) });
    this.network.moveAway(process, zombieHost(this.host));
    await this.start();
  }

  /** Ends the processes left behind. */
  buryZombies(): void {
    for (const { process } of this.zombies) abandon(process, false);
    this.zombies.length = 0;
  }

  /** Stops as an operator does; resolves when it has ended. */
  async stop(): Promise<void> {
    const { running, process } = this;
    if (running === undefined) return;
    this.scheduler.trace("stop", this.name);
    this.running = undefined;
    await this.scheduler.runUntil(
      this.scheduler.within(process, () => running.stop()),
      START_LIMIT_MS,
    );
    abandon(process, false);
  }
}
