// Parses `postgres://…` into connection settings, and finds a password that the URL lacks.
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";

/** Trust in the server's certificate, as libpq names it. */
type SslMode = "disable" | "require" | "verify-ca" | "verify-full";

/** One database server. */
export interface PostgresHost {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

/** Where the database is and how to reach it. */
export interface PostgresSettings {
  /** Tried in turn; the primary is used. */
  readonly hosts: readonly [PostgresHost, ...PostgresHost[]];
  readonly user: string;
  readonly database: string;
  /** The URL's password; another source is read at each connection, so that it may change. */
  readonly password: string | undefined;
  /** Looks for the URL's password anew, where it may have changed. */
  readonly newPassword?: () => Promise<string | undefined>;
  readonly sslMode: SslMode;
  /** Files of PEM. */
  readonly sslFiles: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

type Environment = Readonly<Record<string, string | undefined>>;

const FORM = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/;
const SSL_MODES: readonly string[] = ["disable", "require", "verify-ca", "verify-full"];
const OPTIONS: readonly string[] = [
  "host",
  "port",
  "user",
  "password",
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
];
const DEFAULT_PORT = 5_432;

/** True for a URL of this kind. */
export function isPostgresUrl(url: string): boolean {
  return /^postgres(?:ql)?:/.test(url);
}

/** True when the URL holds a password and so must not be shown. */
export function hasPassword(url: string): boolean {
  const [, userInfo = "", , , query = ""] = FORM.exec(url) ?? [];
  return userInfo.includes(":") || new URLSearchParams(query).has("password");
}

/**
 * Parses a URL; missing parts come from PGHOST, PGPORT, PGUSER, PGDATABASE, PGSSLMODE and PGSSLROOTCERT.
 * Throws BAD_ARGUMENT with a sentence that quotes nothing of it.
 */
export function parsePostgresUrl(url: string, env: Environment): PostgresSettings {
  const [whole, userInfo = "", authority = "", path = "", query = ""] = FORM.exec(url) ?? [];
  if (whole === undefined) throw bad("is postgres://USER@HOST:PORT/DATABASE");
  const options = new URLSearchParams(query);
  for (const key of options.keys()) {
    if (!OPTIONS.includes(key)) throw bad(`knows no option ${/^\w{1,40}$/.test(key) ? key : "of that name"}`);
  }
  const [user = "", ...password] = userInfo.split(":");
  const set = (...values: (string | null | undefined)[]): string | undefined =>
    values.find((value) => value !== undefined && value !== null && value !== "") ?? undefined;
  const hosts = parseHosts(
    set(authority, options.get("host"), env["PGHOST"]) ?? "localhost",
    set(options.get("port"), env["PGPORT"]),
  );
  const name = set(decoded(user), options.get("user"), env["PGUSER"], env["USER"]);
  if (name === undefined) throw bad("names no user");
  const ca = set(options.get("sslrootcert"), env["PGSSLROOTCERT"]);
  const [cert, key] = [set(options.get("sslcert")), set(options.get("sslkey"))];
  return {
    hosts,
    user: name,
    database: set(decoded(path), env["PGDATABASE"]) ?? name,
    password: set(decoded(password.join(":")), options.get("password")),
    sslMode: parseSslMode(set(options.get("sslmode"), env["PGSSLMODE"]), hosts),
    sslFiles: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  };
}

/**
 * The URL in the first line of a file. Throws BAD_ARGUMENT for a file that others may read, that cannot be read, or
 * that holds none there.
 */
export async function readUrlFile(path: string): Promise<string> {
  try {
    if (((await stat(path)).mode & 0o077) !== 0) {
      throw new GroveError("BAD_ARGUMENT", `others may read ${path}: chmod 600`);
    }
    const [line = ""] = (await readFile(path, "utf8")).split("\n", 1);
    if (line.trim() !== "") return line.trim();
    throw new GroveError("BAD_ARGUMENT", `${path} holds no URL in its first line`);
  } catch (error) {
    if (error instanceof GroveError) throw error;
    throw new GroveError("BAD_ARGUMENT", `cannot read ${path}: ${errorText(error)}`);
  }
}

/** The same settings with the password that the URL's file has by then; while it cannot be used, the last one. */
export function withPasswordOf(path: string, settings: PostgresSettings, env: Environment): PostgresSettings {
  let known = settings.password;
  const newPassword = async (): Promise<string | undefined> => {
    known = await readUrlFile(path)
      .then((url) => parsePostgresUrl(url, env).password)
      .catch(() => known);
    return known;
  };
  return { ...settings, newPassword };
}

/** True for a server on this machine. */
function isLocal({ host }: PostgresHost): boolean {
  return host.startsWith("/") || /^(?:127(?:\.\d+){3}|::1|localhost)$/.test(host);
}

/** Encrypts what leaves the machine unless the URL says otherwise; libpq falls back to plain text. */
function parseSslMode(mode: string | undefined, hosts: readonly PostgresHost[]): SslMode {
  const chosen = mode ?? (hosts.every(isLocal) ? "disable" : "verify-full");
  if (SSL_MODES.includes(chosen)) return chosen as SslMode;
  throw bad(`takes sslmode=${SSL_MODES.join("|")}`);
}

function parseHosts(text: string, ports: string | undefined): PostgresSettings["hosts"] {
  const portList = ports?.split(",") ?? [];
  const [first, ...rest] = text.split(",").map((part, index) => {
    const [, v6, plain, ownPort] = /^(?:\[([0-9a-fA-F:.]+)\]|([^[\]:]+))(?::(\d+))?$/.exec(part) ?? [];
    const host = v6 ?? (plain === undefined ? undefined : decoded(plain));
    const port = Number(ownPort ?? portList[index] ?? portList[0] ?? DEFAULT_PORT);
    if (host === undefined || !Number.isInteger(port) || port < 1 || port > 65_535) {
      throw bad("has hosts as HOST or HOST:PORT, with commas between them");
    }
    return { host, port };
  });
  if (first === undefined) throw bad("names no host");
  return [first, ...rest];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw bad("has a % that is no escape; write %25");
  }
}

function bad(what: string): GroveError {
  return new GroveError("BAD_ARGUMENT", `the URL of the PostgreSQL database ${what}`);
}

/**
 * The password for a host: the URL's, PGPASSWORD, or the matching line of PGPASSFILE (else ~/.pgpass). Throws
 * BAD_ARGUMENT when there is none, and when others may read the file.
 */
export async function findPassword(
  settings: PostgresSettings,
  at: PostgresHost,
  env: Environment,
): Promise<string> {
  const given = settings.newPassword === undefined ? settings.password : await settings.newPassword();
  if (given !== undefined) return given;
  const own = env["PGPASSWORD"];
  if (own !== undefined && own !== "") return own;
  const path = env["PGPASSFILE"] ?? join(homedir(), ".pgpass");
  const host = at.host.startsWith("/") ? "localhost" : at.host;
  const wanted = [host, String(at.port), settings.database, settings.user];
  for (const line of (await readPasswordFile(path)).split("\n")) {
    if (line.startsWith("#")) continue;
    const fields = [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = ""]) =>
      field.replaceAll(/\\(.)/g, "$1"),
    );
    const [password] = fields.slice(4);
    if (
      password !== undefined &&
      wanted.every((value, index) => ["*", value].includes(fields[index] ?? ""))
    ) {
      return password;
    }
  }
  throw new GroveError(
    "BAD_ARGUMENT",
    "the database asks for a password, and none was given: set PGPASSFILE or PGPASSWORD",
  );
}

async function readPasswordFile(path: string): Promise<string> {
  const mode = await stat(path).then(
    (found) => found.mode,
    () => undefined,
  );
  if (mode === undefined) return "";
  if ((mode & 0o077) !== 0) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `others may read ${path}, so that its passwords are not used: chmod 600`,
    );
  }
  return readFile(path, "utf8");
}
