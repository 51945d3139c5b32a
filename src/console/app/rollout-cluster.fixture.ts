// Three nodes for rollouts: real sshds, each with a clone of one git repository, a Makefile and a service.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "#base/clock.ts";
import { documentText } from "#base/fake-nodes.fixture.ts";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";
import { openDirectoryReader, openNodeStore } from "#metaserver/directory/open-directory.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { type SshServer, SshServers } from "#testing/ssh-server.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import type { Answer } from "./app.fixture.ts";
import { askHttp } from "./app.fixture.ts";
import { PASSWORD, testConsoleOptions, tokenOf } from "./console.fixture.ts";
import { type RunningConsole, startConsole } from "./console.ts";

/** The repository's service; `make build` sets its behaviour from behaviour.json. */
const SERVICE = `import { readFileSync } from "node:fs";
import { createServer } from "node:http";
const { health, errorsPerSecond } = JSON.parse(readFileSync("built.json", "utf8"));
const document = JSON.parse(readFileSync("document.json", "utf8"));
const startedMs = Date.now();
createServer((request, response) => {
  const seconds = (Date.now() - startedMs) / 1000;
  const body = request.url === "/health" ? { status: "ok" } : {
    ...document,
    uptime_seconds: Math.floor(seconds),
    last_restart_unix: Math.floor(startedMs / 1000),
    errors_total: Math.floor(seconds * errorsPerSecond),
    git_commit: null,
  };
  response.writeHead(request.url === "/health" ? health : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}).listen(Number(process.argv[2]), "127.0.0.1");
`;
const MAKEFILE = `build:\n\tcp behaviour.json built.json\nbroken:\n\t@echo no compiler >&2; exit 3\nslow:\n\ttouch begun.log; sleep 300\n`;

/** Behaviour of the service from a commit on. */
export interface Behaviour {
  /** Status of /health; default 200. */
  readonly health?: number;
  readonly errorsPerSecond?: number;
}

/** One node of the cluster. */
export interface RolloutTestNode {
  readonly id: string;
  readonly ssh: SshServer;
  readonly repository: string;
  readonly pidFile: string;
}

/** The nodes r1, r2 and r3, and their repository. */
export interface RolloutCluster {
  readonly nodes: readonly RolloutTestNode[];
  /** Commits a behaviour to main and returns the commit. */
  commit(behaviour: Behaviour): string;
  /** A node's checked out commit. */
  commitOf(node: RolloutTestNode): string;
  /** Leaves a node's local changes as a merge does that has met a conflict in them; their base is a commit. */
  conflict(node: RolloutTestNode, base: string): void;
  /** The newest entry of a node's stash, as a patch. */
  stashOf(node: RolloutTestNode): string;
  /** Reverts local changes of a node's working copy. */
  restore(node: RolloutTestNode): void;
  /** Starts a console with these nodes; resolves when all were polled. */
  startConsole(t: TestContext, overrides?: Partial<ConsoleOptions>): Promise<RolloutService>;
  stop(): Promise<void>;
}

/** A console for an operator's requests. */
export interface RolloutService {
  readonly console: RunningConsole;
  readonly token: string;
  /** Restarts the console with the same files. */
  restart(): Promise<void>;
  /** A body makes it a POST. */
  act(path: string, body?: object): Promise<Answer>;
  /** Starts a rollout to all three nodes in mode binary and returns its first record. */
  begin(more?: object): Promise<RolloutRecord>;
  /** Resolves to the final record. */
  end(id: string): Promise<RolloutRecord>;
}

/** Starts the sshds; services start with the first rollout. */
export async function startRolloutCluster(): Promise<RolloutCluster> {
  const servers = new SshServers();
  const origin = join(servers.folder, "origin");
  mkdirSync(origin);
  git(origin, "init", "-q", "-b", "main");
  writeFileSync(join(origin, "serve.mjs"), SERVICE);
  writeFileSync(join(origin, "Makefile"), MAKEFILE);
  writeFileSync(join(origin, "document.json"), documentText({ users: [] }));
  writeFileSync(join(origin, ".gitignore"), "built.json\n*.pid\n*.pid.new\n*.log\n");
  const commit = (behaviour: Behaviour): string => {
    writeFileSync(
      join(origin, "behaviour.json"),
      JSON.stringify({ health: 200, errorsPerSecond: 0, ...behaviour }),
    );
    git(origin, "add", ".");
    git(origin, "commit", "-q", "--allow-empty", "-m", "next");
    return git(origin, "rev-parse", "HEAD");
  };
  commit({});
  const nodes: RolloutTestNode[] = [];
  const ports = new Map<string, number>();
  const free = await freeGrpcPorts(3);
  for (const id of ["r1", "r2", "r3"]) {
    const ssh = await servers.start();
    const repository = join(ssh.home, "grove");
    git(ssh.home, "clone", "-q", origin, repository);
    nodes.push({ id, ssh, repository, pidFile: join(repository, "service.pid") });
    ports.set(id, (free.pop() ?? 0) - METRICS_PORT_OFFSET);
  }
  return {
    nodes,
    commit,
    commitOf: ({ repository }) => git(repository, "rev-parse", "HEAD"),
    conflict({ repository }, base) {
      const changed = git(repository, "stash", "create");
      git(repository, "checkout", "-q", ".");
      git(repository, "read-tree", "-m", base, "HEAD", changed);
      git(repository, "checkout", "-q", "--theirs", ".");
    },
    stashOf: ({ repository }) => git(repository, "stash", "show", "--patch"),
    restore: ({ repository }) => void git(repository, "checkout", "-q", "."),
    startConsole: (t, overrides) =>
      startService(t, { nodes, ports, keyFile: servers.keyFile }, overrides ?? {}),
    async stop() {
      for (const { pidFile } of nodes) {
        try {
          process.kill(Number(readFileSync(pidFile, "utf8").split("\n")[0]));
        } catch {
          // No such process.
        }
      }
      await servers.stop();
    },
  };
}

async function startService(
  t: TestContext,
  cluster: {
    readonly nodes: readonly RolloutTestNode[];
    readonly ports: ReadonlyMap<string, number>;
    readonly keyFile: string;
  },
  overrides: Partial<ConsoleOptions>,
): Promise<RolloutService> {
  const others = cluster.nodes.map(({ id }) => ({
    id,
    address: `127.0.0.1:${(cluster.ports.get(id) ?? 0) + METRICS_PORT_OFFSET}`,
  }));
  const { options: bare, ends } = await testConsoleOptions(t, others);
  ends.push(() => bare.directory.close());
  const options = { ...bare, ssh: { keyFile: cluster.keyFile }, ...overrides };
  await enrol(ends, options.dataFolder, cluster);
  const ask = (path: string, more: object = {}): Promise<Answer> =>
    askHttp(`${now.console.url}${path}`, more);
  const start = async (): Promise<{ console: RunningConsole; token: string }> => {
    const directory = await openDirectoryReader(storeOf(options.dataFolder), { clock: systemClock });
    const console = await startConsole({ ...options, directory });
    while ((await askHttp(`${console.url}/ready`)).status !== 200) await sleep(20);
    const answer = await askHttp(`${console.url}/api/auth/login`, { body: { password: PASSWORD } });
    return { console, token: tokenOf(answer) };
  };
  let now = await start();
  ends.push(() => now.console.stop());
  const act = (path: string, body?: object): Promise<Answer> =>
    ask(path, {
      headers: { authorization: `Bearer ${now.token}` },
      ...(body === undefined ? {} : { method: "POST", body }),
    });
  return {
    get console() {
      return now.console;
    },
    get token() {
      return now.token;
    },
    async restart() {
      await now.console.stop();
      now = await start();
    },
    act,
    async begin(more = {}) {
      const answer = await act("/api/rollouts", {
        nodes: ["r1", "r2", "r3"],
        branch: "main",
        restart_mode: "binary",
        target_service: "fileserver",
        step_size: 2,
        gates: { health_seconds: 20, observe_seconds: 0 },
        ...more,
      });
      if (answer.status >= 300) throw new Error(answer.text);
      return answer.json as RolloutRecord;
    },
    async end(id) {
      for (;;) {
        const record = (await act(`/api/rollouts/${id}`)).json as RolloutRecord;
        if (record.state !== "running") return record;
        await sleep(100);
      }
    },
  };
}

/** Enrols the nodes in the store as a MetaServer and `grove node add` do. */
async function enrol(
  ends: (() => unknown)[],
  dataFolder: string,
  {
    nodes,
    ports,
  }: { readonly nodes: readonly RolloutTestNode[]; readonly ports: ReadonlyMap<string, number> },
): Promise<void> {
  const sshNodes = await openNodeStore(storeOf(dataFolder), { clock: systemClock });
  ends.push(() => sshNodes.close());
  for (const { id, ssh, repository, pidFile } of nodes) {
    const port = ports.get(id) ?? 0;
    const { host, port: sshPort, user, hostKey } = ssh;
    await sshNodes.putSshNode({
      id,
      host,
      port: sshPort,
      user,
      hostKey,
      repository,
      services: {
        fileserver: {
          argv: [process.execPath, "serve.mjs", String(port)],
          cwd: repository,
          pidFile,
          logFile: join(repository, "service.log"),
        },
      },
    });
  }
}

function storeOf(dataFolder: string): string {
  return `sqlite:${join(dataFolder, "metadata.db")}`;
}

function git(cwd: string, ...args: string[]): string {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
  return execFileSync("git", [...who, ...args], { cwd, encoding: "utf8" }).trim();
}
