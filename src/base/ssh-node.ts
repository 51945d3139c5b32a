// A node's SSH administration data: address, user, host key, and its services (D20).
import { GroveError } from "./errors.ts";
import { checkedNodeId, formatHostPort, parseHostPort } from "./node-id.ts";

/** Arguments of a service's program, and also variables of its environment, kept per node. */
export const SSH_ARGUMENTS_MAX = 64;
/** Bytes of one such argument, value or path. */
export const SSH_TEXT_MAX_BYTES = 4_096;

/** Services of a node in restart order (T14). */
export const SERVICE_NAMES = ["fileserver", "metaserver", "admin"] as const;
/** A service of a node. */
export type ServiceName = (typeof SERVICE_NAMES)[number];

/**
 * How to restart a service without a service manager: the node restart parameters of the specification (2.9).
 */
export interface SshService {
  /** Log file for the tail without a journal; absolute, or below `cwd`, else below the user's home folder. */
  readonly logFile?: string;
  /** The program and its arguments, without a shell; goes with `pidFile`. */
  readonly argv?: readonly string[];
  readonly cwd?: string;
  /** Holds no secret: those belong into files that the program reads. */
  readonly env?: Readonly<Record<string, string>>;
  readonly pidFile?: string;
}

/** A node that actions may reach. */
export interface SshNode {
  /** The id that the node registers with. */
  readonly id: string;
  /** An address or a name; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** The host's pinned public key: `ssh-ed25519 AAAA…`, without a comment. */
  readonly hostKey: string;
  /** The folder of the sources: absolute, or below the user's home folder. */
  readonly repository: string;
  readonly services: Readonly<Partial<Record<ServiceName, SshService>>>;
}

const USER = /^[a-z_][a-z0-9_-]{0,31}$/;
const KEY =
  /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) ([A-Za-z0-9+/]{40,4000}={0,2})(?: [^\r\n]*)?$/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const SECRET_NAME = /(?:PASSWORD|PASSPHRASE|SECRET|TOKEN)(?:_HASH)?$/i;
const SERVICE_FIELDS: ReadonlySet<string> = new Set(["logFile", "argv", "cwd", "env", "pidFile"]);

/** Returns the node with only its checked parts. Throws BAD_ARGUMENT, which quotes no value. */
export function checkedSshNode(node: SshNode): SshNode {
  const { user } = node;
  const id = checkedNodeId(node.id);
  const { host, port } = parseHostPort(formatHostPort(node));
  if (!USER.test(user)) throw bad("a user has 1 to 32 lower-case letters, digits, - and _, a letter first");
  const services: Partial<Record<ServiceName, SshService>> = {};
  for (const [name, service] of Object.entries(node.services)) {
    const known = SERVICE_NAMES.find((one) => one === name);
    if (known === undefined) throw bad(`a service is one of ${SERVICE_NAMES.join(", ")}`);
    services[known] = checkedService(service, known);
  }
  const hostKey = checkedHostKey(node.hostKey);
  return { id, host, port, user, hostKey, repository: folder(node.repository, "the repository"), services };
}

/**
 * Returns a host's public key without its comment. Throws BAD_ARGUMENT for a key of another type than named.
 */
export function checkedHostKey(text: string): string {
  const [, kind = "", base64 = ""] = KEY.exec(text) ?? [];
  const bytes = Buffer.from(base64, "base64");
  const isOfItsKind = bytes.subarray(4, 4 + kind.length).toString("latin1") === kind;
  if (kind === "" || !isOfItsKind || bytes.readUInt32BE(0) !== kind.length) {
    throw bad("a host key is one line such as ssh-ed25519 AAAA…");
  }
  return `${kind} ${base64}`;
}

function checkedService(service: SshService | undefined, name: ServiceName): SshService {
  if (typeof service !== "object" || Object.keys(service).some((field) => !SERVICE_FIELDS.has(field))) {
    throw bad(`${name} has the fields logFile, argv, cwd, env and pidFile`);
  }
  const { logFile, argv, cwd, env, pidFile } = service;
  if ((argv === undefined) !== (pidFile === undefined)) throw bad(`${name}: argv and pidFile go together`);
  return {
    ...(logFile === undefined ? {} : { logFile: folder(logFile, `${name}: logFile`) }),
    ...(argv === undefined ? {} : { argv: checkedArgv(argv, name) }),
    ...(cwd === undefined ? {} : { cwd: folder(cwd, `${name}: cwd`) }),
    ...(env === undefined ? {} : { env: checkedEnv(env, name) }),
    ...(pidFile === undefined ? {} : { pidFile: folder(pidFile, `${name}: pidFile`) }),
  };
}

function checkedArgv(argv: readonly string[], name: ServiceName): readonly string[] {
  const isList = Array.isArray(argv) && argv.length > 0 && argv.length <= SSH_ARGUMENTS_MAX;
  if (!isList || !argv.every(isText) || argv[0] === "" || argv[0]?.startsWith("-") === true) {
    throw bad(
      `${name}: argv is a program and its arguments, ${SSH_ARGUMENTS_MAX} at most, without control characters`,
    );
  }
  return [...argv];
}

function checkedEnv(
  env: Readonly<Record<string, string>>,
  name: ServiceName,
): Readonly<Record<string, string>> {
  const entries = typeof env === "object" && env !== null ? Object.entries(env) : undefined;
  if (
    entries === undefined ||
    entries.length > SSH_ARGUMENTS_MAX ||
    !entries.every(([key, value]) => ENV_NAME.test(key) && isText(value))
  ) {
    throw bad(`${name}: env is names and values, ${SSH_ARGUMENTS_MAX} at most, without control characters`);
  }
  const secret = entries.find(([key]) => SECRET_NAME.test(key))?.[0];
  if (secret === undefined) return { ...env };
  throw bad(
    `${name}: ${secret} is a secret, which this store does not keep: have the program read it from a file`,
  );
}

function isText(text: unknown): text is string {
  return (
    typeof text === "string" &&
    text.isWellFormed() &&
    !CONTROL.test(text) &&
    Buffer.byteLength(text) <= SSH_TEXT_MAX_BYTES
  );
}

function folder(path: string, what: string): string {
  const isPath = isText(path) && path !== "" && !/^[-~]/.test(path) && !path.split("/").includes("..");
  if (isPath) return path;
  throw bad(
    `${what} is a path, absolute or below the user's home folder, without ".." and not beginning with - or ~`,
  );
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
