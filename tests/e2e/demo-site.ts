// A whole demonstration cluster with users, files and SSH machines, for scenes and screenshots.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type SshServer, SshServers, withoutSshServer } from "#testing/ssh-server.ts";
import { signInWithChromium, startLogin } from "./browser-sign-in.ts";
import { groveHere } from "./client-here.ts";
import { grove, type Program, startGrove, stopProgram } from "./processes.ts";

/** The used parts of cluster.json. */
export interface ClusterFile {
  readonly console: string;
  readonly admin_password: string;
  readonly metaserver: string;
  readonly nodes: readonly { readonly id: string; readonly grpc: string; readonly data: string }[];
  readonly pids: Readonly<Record<string, number | null>>;
  readonly users: readonly { readonly email: string; readonly password: string }[];
}

/** A running cluster. */
export interface DemoSite {
  readonly folder: string;
  /** The console. */
  readonly url: string;
  readonly password: string;
  /** The current cluster.json. */
  cluster(): Promise<ClusterFile>;
  /** Signs a user in: by a mock token, or as a demonstration user in a browser. */
  signIn(user: string): Promise<void>;
  /** Runs ./grove in a user's name. */
  as(user: string, ...words: readonly string[]): Program;
  /** Sends a request to the console as an operator. */
  ask(path: string, method?: "GET" | "POST" | "PUT", body?: unknown): Promise<unknown>;
}

/** Longest start of several processes on a busy machine. */
const START_WAIT_MS = 120_000;

interface Owner {
  after(hook: () => Promise<void>): void;
}

/** Options of a site. */
export interface DemoRequest {
  readonly nodes: number;
  /** Called with the data folder before anything starts; returns its undo, if needed. */
  readonly prepare?: (folder: string) => (() => void) | undefined;
  /** True to enrol an sshd as each node's machine. */
  readonly hasSsh?: boolean;
  readonly reserve?: string;
  /** True for TLS and the identity provider instead of mock tokens. */
  readonly isReal?: boolean;
}

/** The reason why the site's machines cannot be reached over SSH here; false where they can. */
export const withoutMachines = withoutSshServer;

/** Starts it; it ends with its owner. */
export async function openDemoSite(t: Owner, request: DemoRequest): Promise<DemoSite> {
  // Hooks run in the order of their registration, but the last made must end first.
  const ends: (() => Promise<void> | void)[] = [];
  t.after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  const folder = scratchFolder("grove-e2e-");
  const undo = request.prepare?.(folder);
  if (undo !== undefined) ends.push(undo);
  const home = join(folder, "home");
  mkdirSync(join(home, ".ssh"), { recursive: true, mode: 0o700 });
  const servers = request.hasSsh === true ? new SshServers() : undefined;
  if (servers !== undefined) {
    ends.push(() => servers.stop());
    copyFileSync(servers.keyFile, join(home, ".ssh", "id_ed25519"));
    await chmod(join(home, ".ssh", "id_ed25519"), 0o600);
  }
  const words = [
    "up",
    ...(request.isReal === true ? [] : ["-mock"]),
    "-nodes",
    String(request.nodes),
    "-data",
    folder,
  ];
  const reserve = request.reserve === undefined ? [] : ["-reserve", request.reserve];
  const up = startGrove([...words, ...reserve], { env: { HOME: home } });
  ends.push(async () => void (await stopProgram(up, "SIGINT")));
  await up.says(/Next, in another terminal/, START_WAIT_MS);
  const clusterPath = join(folder, "cluster.json");
  const cluster = async (): Promise<ClusterFile> =>
    JSON.parse(await readFile(clusterPath, "utf8")) as ClusterFile;
  const { console: url, admin_password: password, nodes } = await cluster();
  if (servers !== undefined) makeSources(folder);
  for (const { id } of servers === undefined ? [] : nodes) {
    await enrol(id, await (servers as SshServers).start(), folder);
  }
  let cookie: string | undefined;
  return {
    folder,
    url,
    password,
    cluster,
    async signIn(user) {
      const env = { XDG_CONFIG_HOME: join(folder, "people", user) };
      const person = (await cluster()).users.find(({ email }) => email === user);
      const ended =
        request.isReal === true
          ? (await signInWithChromium(await startLogin(clusterPath, env), person ?? assert.fail(user))).ended
          : await groveHere(["login", "--cluster", clusterPath, "--mock", user], { env });
      assert.equal(ended.code, 0, ended.stderr);
    },
    as: (user, ...rest) => startGrove(rest, { env: { XDG_CONFIG_HOME: join(folder, "people", user) } }),
    async ask(path, method = "GET", body) {
      cookie ??= await cookieOf(url, password);
      const answer = await fetch(url + path, {
        method,
        headers: {
          cookie,
          origin: url,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
      return JSON.parse(text) as unknown;
    },
  };
}

async function cookieOf(url: string, password: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ password }),
  });
  assert.equal(answer.status, 200);
  return answer.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
}

const IDENTITY = ["-c", "user.name=demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgsign=false"];

function git(folder: string, ...words: readonly string[]): void {
  execFileSync("git", [...IDENTITY, "-C", folder, ...words], { stdio: "ignore" });
}

/** A repository whose branch main the machines pull: its build prints its commit. */
function makeSources(folder: string): void {
  const sources = join(folder, "sources");
  mkdirSync(sources);
  git(sources, "init", "-q", "-b", "main");
  commitSources(folder, "@echo built $$(git rev-parse --short HEAD)");
}

/** A new commit on main; its build runs this line. */
export function commitSources(folder: string, build: string): void {
  const sources = join(folder, "sources");
  writeFileSync(join(sources, "Makefile"), `build:\n\t${build}\n`);
  git(sources, "add", "-A");
  git(sources, "commit", "-q", "--allow-empty", "-m", build);
}

/**
 * Makes an sshd the machine of a node: its FileServer's log is there, and "systemctl restart" ends the
 * process, which `grove up` restarts.
 */
async function enrol(id: string, server: SshServer, folder: string): Promise<void> {
  server.addProgram("sudo", 'if [ "$1" = -n ]; then shift; fi\nexec "$@"');
  server.addProgram(
    "systemctl",
    `test "$1 $2" = "restart svc-fileserver" || { echo "unknown: $*" >&2; exit 1; }
pid=$(sed -n 's/.*"${id}": \\([0-9]*\\).*/\\1/p' ${join(folder, "cluster.json")})
kill "$pid" && echo "svc-fileserver of ${id} was process $pid"`,
  );
  const services = join(folder, `${id}-services.json`);
  await writeFile(services, JSON.stringify({ fileserver: { log_file: join(folder, "logs", `${id}.log`) } }));
  const store = ["-meta", `sqlite:${join(folder, "metaserver", "metadata.db")}`];
  const repository = join(server.home, "grove");
  execFileSync("git", ["clone", "-q", join(folder, "sources"), repository], { stdio: "ignore" });
  const machine = ["-host_key", server.hostKey, "-repository", repository, "-services", services];
  const place = `${server.user}@${server.host}:${server.port}`;
  const added = await grove(["node", "add", id, place, ...store, ...machine]);
  assert.equal(added.code, 0, added.stderr);
}

/** Signs a user in and writes files of these sizes below "/", in bytes. */
export async function addUser(
  site: DemoSite,
  user: string,
  files: Readonly<Record<string, number>>,
): Promise<void> {
  await site.signIn(user);
  for (const [name, size] of Object.entries(files)) {
    const path = join(site.folder, name);
    await writeFile(path, Buffer.alloc(size, name));
    const put = await site.as(user, "put", path, "/").ended;
    assert.equal(put.code, 0, put.stderr);
  }
}
