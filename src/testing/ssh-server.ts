// A real sshd of one's own for tests: a port of this machine, a home folder and a PATH of its own, gone afterwards.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-ports.ts";
import { childrenOf } from "./server-process.ts";

const SSHD = "/usr/sbin/sshd";

/** What `skip` of a test says: false where sshd is there, and in CI, where the test must fail without it. */
export function withoutSshServer(): string | false {
  return existsSync(SSHD) || (process.env["CI"] ?? "") !== "" ? false : "sshd is not installed";
}

/** What `skip` of a test says: false where a server can have a boot id of its own, and in CI, where the test must fail without it. */
export function withoutOwnBootId(): string | false {
  const without = withoutSshServer();
  if (without !== false || (process.env["CI"] ?? "") !== "") return without;
  const { status } = spawnSync("unshare", ["-m", "true"]);
  return status === 0 ? false : "no mount namespace can be made here";
}

/** Keys and folders of one test: a key that its servers let in, and the servers. */
export class SshServers {
  readonly folder: string = mkdtempSync(join(tmpdir(), "sshd-"));
  /** The private key that all servers let in. */
  readonly keyFile: string = join(this.folder, "id_ed25519");
  readonly #servers: SshServer[] = [];

  constructor() {
    makeKey(this.keyFile);
    // sshd wants it where it is started by root.
    if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  }

  /** Starts one more; resolves when it listens. */
  async start(options: SshServerOptions = {}): Promise<SshServer> {
    const server = new SshServer(
      join(this.folder, `s${this.#servers.length}`),
      await freePort(),
      this.keyFile,
      options,
    );
    this.#servers.push(server);
    await server.start();
    return server;
  }

  /** Ends all of them and removes their folders. */
  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** How a server differs from others. */
export interface SshServerOptions {
  /** Where it listens; default 127.0.0.1. */
  readonly listen?: string;
  /** Further lines of its configuration. */
  readonly settings?: readonly string[];
  /** Variables that its sessions find, besides HOME and PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** What its sessions read as the kernel's boot id, from its next start on; see `withoutOwnBootId`. */
  readonly bootId?: string;
}

/** One sshd. */
export class SshServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly user: string = userInfo().username;
  /** HOME of those who sign in. */
  readonly home: string;
  /** Comes first in their PATH: for programs that stand in for others. */
  readonly programs: string;
  readonly #folder: string;
  #bootId: string | undefined;
  #child: ChildProcess | undefined;

  constructor(folder: string, port: number, keyFile: string, options: SshServerOptions) {
    this.port = port;
    this.#folder = folder;
    this.#bootId = options.bootId;
    this.home = join(folder, "home");
    this.programs = join(folder, "programs");
    for (const made of [folder, this.home, this.programs]) mkdirSync(made, { mode: 0o700 });
    makeKey(this.#hostKeyFile);
    const env = { HOME: this.home, PATH: `${this.programs}:/usr/local/bin:/usr/bin:/bin`, ...options.env };
    const lines = [
      `Port ${port}`,
      `ListenAddress ${options.listen ?? this.host}`,
      `HostKey ${this.#hostKeyFile}`,
      `PidFile ${join(folder, "pid")}`,
      `AuthorizedKeysFile ${keyFile}.pub`,
      "StrictModes no",
      "PermitRootLogin prohibit-password",
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "MaxStartups 200",
      `SetEnv ${Object.entries(env)
        .map(([name, value]) => `"${name}=${value}"`)
        .join(" ")}`,
      ...(options.settings ?? []),
    ];
    writeFileSync(this.#configFile, `${lines.join("\n")}\n`);
  }

  /** Its public key, as known-hosts files hold it. */
  get hostKey(): string {
    return readFileSync(`${this.#hostKeyFile}.pub`, "utf8").trim();
  }

  /** What it has logged. */
  get log(): string {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  /** Gives it another host key, in force from its next start. */
  changeHostKey(): void {
    rmSync(this.#hostKeyFile);
    rmSync(`${this.#hostKeyFile}.pub`);
    makeKey(this.#hostKeyFile);
  }

  /** Gives it another boot id, in force from its next start. */
  changeBootId(bootId: string): void {
    this.#bootId = bootId;
  }

  /** Puts a shell script where its sessions find it before the system's programs. */
  addProgram(name: string, script: string): void {
    writeFileSync(join(this.programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  /** Starts it unless it runs, again on the same port. */
  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const [program, ...words] = [
      ...this.#ownBootId(),
      SSHD,
      "-D",
      "-f",
      this.#configFile,
      "-E",
      join(this.#folder, "log"),
    ];
    const child = spawn(program, words, { stdio: "ignore" });
    this.#child = child;
    const exited = new Promise<never>((_resolve, reject) => {
      child.once("exit", () => reject(new Error(`sshd ended: ${existsSync(this.#folder) ? this.log : ""}`)));
    });
    exited.catch(() => undefined);
    const isListening = async (): Promise<void> => {
      while (!existsSync(join(this.#folder, "pid"))) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await Promise.race([isListening(), exited]);
  }

  /** Ends it, and the connections that it serves when `cut` is given: as if the network went, their sessions are not told. */
  async stop(options: { readonly cut?: boolean } = {}): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const serving = options.cut === true ? childrenOf(child.pid ?? 0) : [];
    child.kill("SIGTERM");
    for (const pid of serving) process.kill(pid, "SIGKILL");
    await exited;
    rmSync(join(this.#folder, "pid"), { force: true });
  }

  /** The words before those of sshd that give it a view of the kernel of its own. */
  #ownBootId(): string[] {
    if (this.#bootId === undefined) return [];
    const file = join(this.#folder, "boot_id");
    writeFileSync(file, `${this.#bootId}\n`);
    const line = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"';
    return ["unshare", "-m", "sh", "-c", line, file];
  }

  get #configFile(): string {
    return join(this.#folder, "sshd_config");
  }

  get #hostKeyFile(): string {
    return join(this.#folder, "host_key");
  }
}

function makeKey(path: string): void {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path]);
}
