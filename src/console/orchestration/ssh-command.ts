// The system's ssh: one shared connection per node, pinned host keys, no questions at a terminal (D20).
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { readComplaint, type SshRefusal } from "./ssh-refusal.ts";
import { hostKeyPin, type SshTarget } from "./ssh-target.ts";

/** Time limit for reaching a node over SSH: connecting, keys, the shell's first answer. */
const SSH_CONNECT_TIMEOUT_MS = 15_000;
/** Interval of keepalive messages on a silent SSH connection, in seconds, as ssh takes it (D20). */
const SSH_KEEPALIVE_SECONDS = 15;
/** Unanswered keepalive messages that end a connection (D20). */
const SSH_KEEPALIVE_COUNT = 3;
/** Idle time after which a connection closes; an operator's next action reuses it until then. */
const SSH_IDLE_MS: number = 5 * 60_000;
/**
 * Connections, one process of 8 MB each: five actions of 50 nodes. At the limit idle ones close, or actions
 * wait.
 */
const SSH_CONNECTIONS_MAX = 250;
/** Kept bytes of ssh's error output, for its reason. */
export const SSH_COMPLAINT_MAX_BYTES = 8_192;

/** Dependencies of connections. */
export interface SshConnectionsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The private key (`-ssh_key`); must be its owner's alone. One with a passphrase must be in the agent. */
  readonly keyFile: string;
}

/** A connection to a node, in use until `release`. */
export interface SshConnection {
  /** Starts a command of the node's login shell; its streams are those of the returned process. */
  spawn(command: string): ChildProcessWithoutNullStreams;
  release(): void;
  /** Closes it for all users: it is dead. */
  drop(): void;
}

/** The remote shell's first line; output of its startup files before that is skipped. */
const READY = "grove-ssh-ready";
/** Ends with its standard input, so with this process: the remote end and the connection close too. */
const HOLD = `echo ${READY}; exec cat >/dev/null`;
const GROUP_AND_OTHERS = 0o077;
/** A socket's path has 108 bytes, of which ssh needs 17 while it makes it. */
const FOLDER_MAX_BYTES = 64;

/** One ssh process that holds a connection open for others. */
interface Master {
  readonly key: string;
  readonly args: readonly string[];
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves to undefined once connected. */
  readonly opened: Promise<SshRefusal | undefined>;
  users: number;
  usedMs: number;
  cancelIdle: () => void;
}

/** All connections of a console. */
export class SshConnections {
  readonly #deps: SshConnectionsDeps;
  readonly #masters = new Map<string, Master>();
  #folder: Promise<string> | undefined;
  #made = 0;
  #isClosed = false;

  constructor(deps: SshConnectionsDeps) {
    this.#deps = deps;
  }

  /**
   * A connection to a node, reused or new. Resolves to the refusal; rejects only with the signal's reason.
   */
  async open(target: SshTarget, signal?: AbortSignal): Promise<SshConnection | SshRefusal> {
    const unsafe = await this.#keyFileRefusal();
    if (unsafe !== undefined) return unsafe;
    let master: Master | undefined;
    try {
      master = this.#masterOf(target, await this.#ownFolder());
    } catch (error) {
      return {
        reason: "CONNECT_FAILED",
        message: `this machine cannot begin a connection: ${errorText(error)}`,
      };
    }
    if (master === undefined)
      return { reason: "CONNECT_FAILED", message: "too many connections to nodes are open" };
    this.#take(master);
    try {
      const refusal = await beforeAbort(master.opened, signal);
      if (refusal === undefined) return this.#connection(master);
      this.#leave(master);
      return refusal;
    } catch (error) {
      this.#leave(master);
      throw error;
    }
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const masters = [...this.#masters.values()];
    const ends = masters.map((master) => new Promise((resolve) => master.child.once("close", resolve)));
    for (const master of masters) this.#end(master);
    await Promise.all(ends);
    const folder = await this.#folder?.catch(() => undefined);
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }

  /** The node's open connection, or a new one; undefined where there is no room for it. */
  #masterOf(target: SshTarget, folder: string): Master | undefined {
    const key = [target.id, target.host, target.port, target.user, target.hostKey].join("\n");
    return this.#masters.get(key) ?? (this.#makeRoom() ? this.#start(key, target, folder) : undefined);
  }

  #connection(master: Master): SshConnection {
    let isReleased = false;
    return {
      spawn: (command) => spawnSsh([...master.args, command]),
      release: () => {
        if (!isReleased) this.#leave(master);
        isReleased = true;
      },
      drop: () => this.#end(master),
    };
  }

  #take(master: Master): void {
    master.cancelIdle();
    master.users += 1;
  }

  #leave(master: Master): void {
    master.users -= 1;
    master.usedMs = this.#deps.clock.steadyMs();
    if (master.users > 0) return;
    master.cancelIdle = this.#deps.clock.after(SSH_IDLE_MS, () => this.#end(master));
  }

  #end(master: Master): void {
    if (this.#masters.get(master.key) === master) this.#masters.delete(master.key);
    master.cancelIdle();
    master.child.kill("SIGTERM");
  }

  /** Closes an idle connection; false when all are in use. */
  #makeRoom(): boolean {
    if (this.#isClosed) return false;
    if (this.#masters.size < SSH_CONNECTIONS_MAX) return true;
    const idle = [...this.#masters.values()].filter((master) => master.users === 0);
    const oldest = idle.toSorted((a, b) => a.usedMs - b.usedMs)[0];
    if (oldest === undefined) return false;
    this.#end(oldest);
    return true;
  }

  #start(key: string, target: SshTarget, folder: string): Master {
    const name = String(++this.#made);
    const knownHosts = join(folder, `${name}.hosts`);
    const pin = hostKeyPin(target);
    const files = [
      `UserKnownHostsFile="${literal(knownHosts)}"`,
      `ControlPath=${literal(join(folder, name))}`,
    ];
    const options = [...OPTIONS, ...pin.options, ...files].flatMap((option) => ["-o", option]);
    const common = ["-F", "none", "-T", "-i", literal(this.#deps.keyFile), ...options];
    const where = ["-l", target.user, "-p", String(target.port), "--", target.host];
    // A few bytes, synchronously written before ssh reads them.
    writeFileSync(knownHosts, pin.line, { mode: 0o600, flag: "wx" });
    const child = spawnSsh([...common, "-M", ...where, HOLD]);
    const master: Master = {
      key,
      args: [...common, "-o", "ControlMaster=no", ...where],
      child,
      opened: this.#opening(child, target),
      users: 0,
      usedMs: this.#deps.clock.steadyMs(),
      cancelIdle: () => undefined,
    };
    this.#masters.set(key, master);
    child.once("close", () => {
      if (this.#masters.get(key) === master) this.#masters.delete(key);
      master.cancelIdle();
      rm(knownHosts, { force: true }).catch(() => undefined);
    });
    return master;
  }

  /** Resolves when the remote end has answered, or with the refusal. */
  #opening(child: ChildProcessWithoutNullStreams, target: SshTarget): Promise<SshRefusal | undefined> {
    return new Promise((resolve) => {
      let said = "";
      let complaint = "";
      const cancel = this.#deps.clock.after(SSH_CONNECT_TIMEOUT_MS, () => {
        complaint += `\nno answer within ${SSH_CONNECT_TIMEOUT_MS / 1000} seconds`;
        child.kill("SIGKILL");
      });
      child.stdout.on("data", (bytes: Buffer) => {
        said = (said + bytes.toString("latin1")).slice(-SSH_COMPLAINT_MAX_BYTES);
        if (!said.includes(READY)) return;
        cancel();
        this.#deps.log.debug("ssh.connected", { node_id: target.id });
        resolve(undefined);
      });
      child.stderr.on("data", (bytes: Buffer) => {
        complaint = (complaint + bytes.toString("latin1")).slice(-SSH_COMPLAINT_MAX_BYTES);
      });
      child.once("error", (error) => {
        complaint += `\nssh cannot be started: ${error.message}`;
      });
      child.once("close", () => {
        cancel();
        const refusal = readComplaint(complaint, target);
        // After the connection stood, its refusal has no reader.
        if (!said.includes(READY))
          this.#deps.log.warn("ssh.refused", { node_id: target.id, reason: refusal.reason });
        resolve(refusal);
      });
    });
  }

  /** Made anew where the last try failed, or where it rested so long that the system has removed it. */
  async #ownFolder(): Promise<string> {
    const before = this.#folder;
    const known = await before?.catch(() => undefined);
    if (known !== undefined && existsSync(known)) return known;
    const parent = Buffer.byteLength(tmpdir()) <= FOLDER_MAX_BYTES ? tmpdir() : "/tmp";
    if (this.#folder === before) this.#folder = mkdtemp(join(parent, "grove-ssh-"));
    return (await this.#folder) ?? "";
  }

  /** The refusal of a key file that others can read; ssh itself checks only files of its user. */
  async #keyFileRefusal(): Promise<SshRefusal | undefined> {
    const path = this.#deps.keyFile;
    try {
      const { mode } = await stat(path);
      if ((mode & GROUP_AND_OTHERS) === 0) return undefined;
      const message = `the SSH key ${path} can be read or written by others; make it yours alone: chmod 600 '${path}'`;
      return { reason: "KEY_FILE_UNSAFE", message };
    } catch (error) {
      return {
        reason: "KEY_FILE_UNSAFE",
        message: `the SSH key ${path} cannot be read: ${errorText(error)}`,
      };
    }
  }
}

/**
 * Turns off questions, forwarding, other authentication methods, and configuration files of user and machine.
 */
const OPTIONS: readonly string[] = [
  "BatchMode=yes",
  "IdentitiesOnly=yes",
  "PreferredAuthentications=publickey",
  "PasswordAuthentication=no",
  "KbdInteractiveAuthentication=no",
  "ForwardAgent=no",
  "ForwardX11=no",
  "ClearAllForwardings=yes",
  "PermitLocalCommand=no",
  "Tunnel=no",
  "RequestTTY=no",
  "EscapeChar=none",
  "ControlPersist=no",
  "ConnectionAttempts=1",
  `ConnectTimeout=${Math.floor(SSH_CONNECT_TIMEOUT_MS / 1000)}`,
  `ServerAliveInterval=${SSH_KEEPALIVE_SECONDS}`,
  `ServerAliveCountMax=${SSH_KEEPALIVE_COUNT}`,
  "LogLevel=ERROR",
];

/** A path for ssh, with percent signs escaped against its expansion. */
function literal(path: string): string {
  return path.replaceAll("%", "%%");
}

function spawnSsh(args: readonly string[]): ChildProcessWithoutNullStreams {
  const { PATH, HOME, SSH_AUTH_SOCK } = process.env;
  const agent = SSH_AUTH_SOCK === undefined ? {} : { SSH_AUTH_SOCK };
  const child = spawn("ssh", args, { env: { PATH, HOME, LC_ALL: "C", ...agent }, stdio: "pipe" });
  // Writes to an ended process are lost; its exit is reported separately.
  child.stdin.on("error", () => undefined);
  return child;
}

async function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
