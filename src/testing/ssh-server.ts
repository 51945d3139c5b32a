// A real sshd for tests with its own port, home folder and PATH, removed afterwards.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-ports.ts";
import { childrenOf } from "./server-process.ts";

const SSHD = "/usr/sbin/sshd";

/**
 * Value for `skip` of a test: false where sshd is installed, and in CI, where the test must fail without it.
 */
export function withoutSshServer(): string | false {
  return existsSync(SSHD) || (process.env["CI"] ?? "") !== "" ? false : "sshd is not installed";
}

/** Value for `skip` of a test: false where servers can have boot ids, and in CI, where the test must fail. */
export function withoutOwnBootId(): string | false {
  const without = withoutSshServer();
  if (without !== false || (process.env["CI"] ?? "") !== "") return without;
  const { status } = spawnSync("unshare", ["-m", "true"]);
  return status === 0 ? false : "no mount namespace can be made here";
}

/** The servers of one test, with a key that all of them accept. */
export class SshServers {
  readonly folder: string = mkdtempSync(join(tmpdir(), "sshd-"));
  /** The private key that all servers accept. */
  readonly keyFile: string = join(this.folder, "id_ed25519");
  readonly #servers: SshServer[] = [];

  constructor() {
    makeKey(this.keyFile);
    // sshd needs this folder when root starts it.
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

  /** Stops all servers and removes their folders. */
  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Options of a server. */
export interface SshServerOptions {
  /** Listening address; default 127.0.0.1. */
  readonly listen?: string;
  /** Further lines of its configuration. */
  readonly settings?: readonly string[];
  /** Variables of its sessions, besides HOME and PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Boot id that its sessions read, from its next start on; see `withoutOwnBootId`. */
  readonly bootId?: string;
}

/** One sshd. */
export class SshServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly user: string = userInfo().username;
  /** HOME of its sessions. */
  readonly home: string;
  /** First folder of their PATH, for programs that stand in for others. */
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

  /** Its log. */
  get log(): string {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  /** Replaces its host key, in force from its next start. */
  changeHostKey(): void {
    rmSync(this.#hostKeyFile);
    rmSync(`${this.#hostKeyFile}.pub`);
    makeKey(this.#hostKeyFile);
  }

  /** Replaces its boot id, in force from its next start. */
  changeBootId(bootId: string): void {
    this.#bootId = bootId;
  }

  /** Adds a shell script that its sessions find before the system's programs. */
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

  /**
   * Stops it; with `cut` its connections end too, without notice to their sessions, as in a network failure.
   */
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

  /** The command before sshd's own that gives it a private view of the kernel. */
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
