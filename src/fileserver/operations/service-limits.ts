// The limits of decision D17 that operators may change: values, flags, and the log fields of changed ones.
import { type Command, InvalidArgumentError } from "commander";
import { ADMIN_HASH_FAILURES_PER_WINDOW, DEFAULT_INODE_LIMIT, SESSIONS_GLOBAL } from "#base/limits.ts";

/** Concurrent uploads of one user, and as many downloads (decision D17). */
export const STREAMS_PER_USER = 256;
/** Concurrent HTTP/2 streams of one connection (decision D17). */
export const STREAMS_PER_CONNECTION = 100;
/** Sign-ins per minute of one user, and refused ones of one address (decision D17), which many may share. */
export const REGISTER_PER_MINUTE = 60;
/** Calls of a FileServer that take longer are logged with their waits. */
const SLOW_CALL_MS = 1_000;

/** Bounds that an operator may move (D17). Addresses are IPv4 addresses and /64 networks of IPv6. */
export interface ServiceLimits {
  /** Sign-ins of one user in a minute, and refused ones of one address. */
  readonly registerPerMinute: number;
  /** Wrong administrator's passwords of an address in 15 minutes; after that none is compared. */
  readonly passwordFailuresPerWindow: number;
  /** Uploads of one user at once, and as many downloads. */
  readonly streamsPerUser: number;
  /** Calls at once on one connection. */
  readonly streamsPerConnection: number;
  /** Sessions of all users. */
  readonly sessions: number;
  /** Files and directories of a user for whom nothing else is set, those in the trash included. */
  readonly inodesPerUser: number;
  /** Calls that take longer are logged, in milliseconds. */
  readonly slowCallMs: number;
}

/** Values without flags. */
export const DEFAULT_SERVICE_LIMITS: ServiceLimits = {
  registerPerMinute: REGISTER_PER_MINUTE,
  passwordFailuresPerWindow: ADMIN_HASH_FAILURES_PER_WINDOW,
  streamsPerUser: STREAMS_PER_USER,
  streamsPerConnection: STREAMS_PER_CONNECTION,
  sessions: SESSIONS_GLOBAL,
  inodesPerUser: DEFAULT_INODE_LIMIT,
  slowCallMs: SLOW_CALL_MS,
};

/** The flags' values. */
export interface LimitFlags {
  readonly registerPerMinute: number;
  readonly passwordFailures: number;
  readonly streamsPerUser: number;
  readonly streamsPerConnection: number;
  readonly sessions: number;
  readonly inodesPerUser: number;
  readonly slowCallMs: number;
}

/** Adds the flags to a server's parser. */
export function withLimitFlags(command: Command): Command {
  const limits = DEFAULT_SERVICE_LIMITS;
  return command
    .option(
      "--register-per-minute <n>",
      "sign-ins of one user per minute, and refused ones of one address",
      parseCount,
      limits.registerPerMinute,
    )
    .option(
      "--password-failures <n>",
      "wrong administrator's passwords per address in 15 minutes; then none is compared",
      parseCount,
      limits.passwordFailuresPerWindow,
    )
    .option(
      "--streams-per-user <n>",
      "uploads of one user at once, and as many downloads",
      parseCount,
      limits.streamsPerUser,
    )
    .option(
      "--streams-per-connection <n>",
      "calls at once on one connection",
      parseCount,
      limits.streamsPerConnection,
    )
    .option("--sessions <n>", "sessions of all users at once", parseCount, limits.sessions)
    .option(
      "--inodes-per-user <n>",
      "files and folders of a user, trash included, unless 'grove quota set --inodes' says otherwise",
      parseCount,
      limits.inodesPerUser,
    )
    .option(
      "--slow-call-ms <n>",
      "log calls that take longer, with what they waited for",
      parseCount,
      limits.slowCallMs,
    );
}

/** The limits that the flags ask for. */
export function limitsOf(flags: LimitFlags): ServiceLimits {
  return {
    registerPerMinute: flags.registerPerMinute,
    passwordFailuresPerWindow: flags.passwordFailures,
    streamsPerUser: flags.streamsPerUser,
    streamsPerConnection: flags.streamsPerConnection,
    sessions: flags.sessions,
    inodesPerUser: flags.inodesPerUser,
    slowCallMs: flags.slowCallMs,
  };
}

/** The changed limits as fields of a log line; undefined when all have their default. */
export function movedLimits(limits: Partial<ServiceLimits>): Record<string, number> | undefined {
  const moved: Record<string, number> = {};
  for (const [name, value] of Object.entries(limits)) {
    if (value === DEFAULT_SERVICE_LIMITS[name as keyof ServiceLimits]) continue;
    moved[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = value;
  }
  return Object.keys(moved).length === 0 ? undefined : moved;
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new InvalidArgumentError("write a whole number from 1 up.");
  }
  return count;
}
