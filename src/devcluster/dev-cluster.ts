// Runs a whole cluster on this machine: starts processes in order, restarts them, stops in reverse.
import { existsSync } from "node:fs";
import { readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { errorText } from "#base/log.ts";
import { metricsPortOf } from "#base/metrics-port.ts";
import { holdAlone } from "#os/file-lock.ts";
import { writePrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { loadOrCreateAuthority } from "#security/authority/authority.ts";
import { ensureDoorCertificate, ensureNodeCertificate } from "#security/authority/node-certificate-files.ts";
import { DEFAULT_REDIRECT_URI } from "#security/identity/sign-in-variables.ts";
import { type ClusterDocument, ClusterFile } from "./cluster-file.ts";
import { readOrMakeState, writeState } from "./demo-state.ts";
import { waitForLastRun } from "./last-run.ts";
import { PortReservation } from "./port-reservation.ts";
import {
  consoleUrl,
  DEMO_CLIENT_ID,
  DEMO_DOOR_CLIENT_ID,
  type DemoPlan,
  type DemoTls,
  doorUrl,
  idpDocument,
  nodeFolder,
  nodeIds,
  processPlans,
  providerSettingsPath,
} from "./process-plans.ts";
import { issuerOf, type ProviderSettings } from "./provider-settings.ts";
import { chooseReserve } from "./reserve-choice.ts";
import { SupervisedProcess } from "./supervised-process.ts";
import { readyLine, reserveWarning, type Screen, summaryLines } from "./up-screen.ts";

/** Options of `grove up`. */
export interface DevClusterOptions {
  /** Absolute path of the cluster's folder. */
  readonly folder: string;
  /** Undefined: as many as last time, at first three. */
  readonly nodeCount: number | undefined;
  readonly mock: boolean;
  /** Undefined: as specified, or less on a small disk. */
  readonly reserveBytes: bigint | undefined;
  /** Path of the program's entry file. */
  readonly entry: string;
  /** The command with which the user starts the program. */
  readonly program: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly screen: Screen;
}

/** File of the running cluster in its folder. */
export const CLUSTER_FILE = "cluster.json";

const FIRST_NODES = 3;

/** A starting or running cluster. */
export class DevCluster {
  readonly #options: DevClusterOptions;
  readonly #unlock: () => void;
  readonly #file: ClusterFile;
  readonly #ports = new PortReservation();
  readonly #failed = Promise.withResolvers<void>();
  #processes: SupervisedProcess[] = [];
  #plan: DemoPlan | undefined;
  #isUp = false;
  #isStopping = false;
  #starting: Promise<void> = Promise.resolve();

  private constructor(options: DevClusterOptions, unlock: () => void) {
    this.#options = options;
    this.#unlock = unlock;
    this.#file = new ClusterFile(join(options.folder, CLUSTER_FILE));
  }

  /** Locks the folder. Throws DATA_IN_USE when another `grove up` runs on it. */
  static async open(options: DevClusterOptions): Promise<DevCluster> {
    makePrivateFolder(options.folder);
    const unlock = holdAlone(
      join(options.folder, "up.lock"),
      `another 'grove up' runs on ${options.folder}: ${CLUSTER_FILE} in it says where; stop that one first, or give another -data`,
    );
    return new DevCluster(options, unlock);
  }

  /**
   * Starts everything in the background; the promise rejects when a process does not serve, and never
   * resolves.
   */
  run(): Promise<void> {
    this.#starting = this.#start().catch((error: unknown) => {
      if (!this.#isStopping) this.#failed.reject(error);
    });
    return this.#failed.promise;
  }

  /** Stops every process, the last one first, and unlocks the folder; failures do not stop it. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const { screen } = this.#options;
    const ends = new AsyncDisposableStack();
    ends.defer(() => this.#unlock());
    ends.defer(() => this.#ports.letGo());
    ends.defer(() => this.#file.remove());
    ends.defer(() => this.#starting);
    for (const process of this.#processes) {
      ends.defer(async () => {
        if (process.pid !== null) screen.line(`  stopping ${process.plan.name}`);
        await process.stop();
      });
    }
    ends.defer(() => this.#file.remove());
    await ends.disposeAsync();
    screen.line("stopped");
  }

  async #start(): Promise<void> {
    const { folder, screen } = this.#options;
    await waitForLastRun(this.#file.path);
    await this.#file.remove();
    screen.line(`Starting a cluster in ${folder}`);
    const plan = await this.#startProcesses();
    if (plan === undefined) return;
    const document = this.#document(plan);
    await this.#file.write(document);
    this.#isUp = true;
    const { program } = this.#options;
    const lines = summaryLines({
      document,
      clusterFile: this.#file.path,
      logFolder: join(folder, "logs"),
      program,
      sample: existsSync("node_modules") ? "node_modules" : "FOLDER",
      cwd: process.cwd(),
    });
    for (const line of lines) screen.line(line);
  }

  /** Resolves with the running plan, or with nothing when it was stopped meanwhile. */
  async #startProcesses(): Promise<DemoPlan | undefined> {
    const { screen } = this.#options;
    if (this.#isStopping) return undefined;
    const plan = await preparePlan(this.#options, this.#ports);
    this.#plan = plan;
    for (const process of processPlans(plan)) {
      if (this.#isStopping) return undefined;
      const supervised = new SupervisedProcess(process, {
        onDied: (name, how) =>
          screen.line(`  ! ${name} has ended (${how}); it is started again. Log: ${process.logPath}`),
        onRestarted: (name) => void this.#restarted(name),
      });
      this.#processes.push(supervised);
      await supervised.start();
      screen.line(readyLine(process.name, addressOf(plan, process.name)));
    }
    return plan;
  }

  async #restarted(name: string): Promise<void> {
    if (this.#plan === undefined || !this.#isUp || this.#isStopping) return;
    try {
      await this.#file.write(this.#document(this.#plan));
      this.#options.screen.line(readyLine(name, "serves again"));
    } catch (error) {
      this.#options.screen.line(`  ! ${this.#file.path} could not be written: ${errorText(error)}`);
    }
  }

  #document(plan: DemoPlan): ClusterDocument {
    const pids = Object.fromEntries(this.#processes.map(({ plan: { name }, pid }) => [name, pid]));
    return {
      metaserver: `127.0.0.1:${plan.ports.metaserver}`,
      console: consoleUrl(plan),
      door: doorUrl(plan),
      admin_password: plan.state.adminPassword,
      metrics_token: plan.state.metricsToken,
      nodes: nodeIds(plan).map((id, index) => {
        const port = plan.ports.nodes[index] ?? 0;
        return {
          id,
          grpc: `127.0.0.1:${port}`,
          metrics: `http://127.0.0.1:${metricsPortOf(port)}`,
          data: nodeFolder(plan, id),
        };
      }),
      ca: plan.tls?.caPath ?? null,
      mock: plan.mock,
      idp: idpDocument(plan),
      users: plan.state.users.map(({ email, password }) => ({ email, password })),
      pids: { up: process.pid, idp: null, metaserver: null, console: null, door: null, ...pids },
    };
  }
}

/** Decides and writes everything that the first process needs. */
async function preparePlan(options: DevClusterOptions, held: PortReservation): Promise<DemoPlan> {
  const { folder, mock, screen, entry, env } = options;
  const { bavail, bsize } = await statfs(folder, { bigint: true });
  const freeBytes = bavail * bsize;
  const { reserveBytes, isLowered } = chooseReserve(freeBytes, options.reserveBytes);
  if (isLowered) for (const line of reserveWarning({ freeBytes, reserveBytes })) screen.line(line);
  const kept = await readOrMakeState(folder);
  const nodeCount = options.nodeCount ?? kept.ports?.nodes.length ?? FIRST_NODES;
  for (const id of await idleNodes(folder, nodeCount)) {
    screen.line(`  ! ${id} has data and is not started: users whose root is there have to wait. See -nodes.`);
  }
  const ports = await held.choose(nodeCount, kept.ports);
  const state = { ...kept, ports };
  await writeState(folder, state);
  const plan = { folder, entry, state, ports, reserveBytes, mock, env };
  if (mock) return { ...plan, tls: undefined };
  const settings: ProviderSettings = {
    port: ports.idp,
    clientId: DEMO_CLIENT_ID,
    redirectUris: [DEFAULT_REDIRECT_URI, DEFAULT_REDIRECT_URI.replace("localhost", "127.0.0.1")],
    door: {
      clientId: DEMO_DOOR_CLIENT_ID,
      redirectUris: [`${doorUrl({ ...plan, tls: undefined })}/sign-in/callback`],
    },
    ...state.keys,
    users: state.users,
  };
  await writePrivateFile(providerSettingsPath(folder), `${JSON.stringify(settings, null, 2)}\n`);
  const ids = ["metaserver", ...ports.nodes.map((_port, index) => `node-${index + 1}`)];
  return { ...plan, tls: await prepareTls(folder, ids) };
}

/** Data folders of an earlier run with more nodes. */
async function idleNodes(folder: string, nodeCount: number): Promise<string[]> {
  const names = await readdir(folder);
  return names.filter((name) => Number(/^node-(\d{1,3})$/.exec(name)?.[1] ?? 0) > nodeCount);
}

async function prepareTls(folder: string, ids: readonly string[]): Promise<DemoTls> {
  const authority = await loadOrCreateAuthority(join(folder, "ca"), { clock: systemClock });
  const files: [string, Awaited<ReturnType<typeof ensureNodeCertificate>>][] = [];
  for (const id of ids) {
    const request = { id, names: ["localhost"], addresses: ["127.0.0.1", "::1"] };
    files.push([id, await ensureNodeCertificate(authority, join(folder, "certs"), request, systemClock)]);
  }
  files.push(["door", await ensureDoorCertificate(authority, join(folder, "certs"), "door", systemClock)]);
  return { caPath: authority.certificatePath, caPem: authority.certificatePem, files: new Map(files) };
}

function addressOf(plan: DemoPlan, name: string): string {
  if (name === "idp") return `${issuerOf(plan.ports.idp)}  (identity provider)`;
  if (name === "metaserver") return `127.0.0.1:${plan.ports.metaserver}`;
  if (name === "console") return `${consoleUrl(plan)}  (for operators and whoever wants to look)`;
  if (name === "door") return `${doorUrl(plan)}/dav/  (WebDAV)`;
  const port = plan.ports.nodes[nodeIds(plan).indexOf(name)] ?? 0;
  return `127.0.0.1:${port}  metrics http://127.0.0.1:${metricsPortOf(port)}/metrics`;
}
