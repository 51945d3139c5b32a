// The texts of alerts: sentences with the value, its unit and its limit, made from facts (decision D11).
import { formatBytes } from "#base/bytes.ts";
import { PERCENT_TOLD_MAX } from "#base/usage-level.ts";
import type { AlertType, Severity } from "#wire/webapi/alert.ts";
import { metaServerOverText, metaServerText } from "./metaserver-texts.ts";
import { restoreText } from "./restore-texts.ts";
import { because, lastAnswer, OFFLINE_AFTER, type Part, span } from "./text-parts.ts";

/** The facts for a text. For visitors hidden facts are missing, so every part must read well without them. */
export interface TextFacts {
  readonly severity: Severity;
  /** The node's name; empty for alerts about no node. */
  readonly node: string;
  readonly username?: string | undefined;
  readonly value?: number | undefined;
  readonly threshold?: number | undefined;
  readonly detail: Readonly<Record<string, string | number | undefined>>;
}

/** A headline and a sentence or two. */
export interface AlertText {
  readonly title: string;
  readonly message: string;
}

/** The texts of one type: while it holds, and after its end. */
interface Texts {
  readonly now: (facts: TextFacts) => AlertText;
  /** Undefined where the end makes no record of its own. */
  readonly over?: (facts: TextFacts) => AlertText;
}

/** The text of an alert of a type. */
export function textOf(type: AlertType, facts: TextFacts, isRecovery: boolean): AlertText {
  const { now, over } = TEXTS[type];
  return isRecovery && over !== undefined ? over(facts) : now(facts);
}

const TEXTS: Readonly<Record<AlertType, Texts>> = {
  node_offline: {
    now: ({ node, detail }) => ({
      title: `${node} is offline`,
      message: `${node} has not answered for more than ${OFFLINE_AFTER}; ${lastAnswer(detail["last_seen"])}${because(detail["reason"])}.${cannotReach(detail["users"])}`,
    }),
  },
  node_online: {
    now: ({ node, detail }) => ({
      title: `${node} is online again`,
      message: `${node} answers again${after(detail["away_seconds"])}.`,
    }),
  },
  storage_warning: {
    now: ({ node, value, threshold, detail }) => ({
      title: `${node} is ${percent(value)} full`,
      message: `The disk of ${node} is ${percent(value)} full, above its limit of ${percent(threshold)}${free(detail)}.${fills(detail["full_in_days"])}`,
    }),
    over: ({ node, value, threshold }) => ({
      title: `${node} has room again`,
      message: `The disk of ${node} is down to ${percent(value)}, below its limit of ${percent(threshold)}.`,
    }),
  },
  temp_warning: {
    now: ({ node, value, threshold }) => ({
      title: `${node} is at ${degrees(value)}`,
      message: `The processor of ${node} is at ${degrees(value)}, above its limit of ${degrees(threshold)}.`,
    }),
    over: ({ node, value, threshold }) => ({
      title: `${node} has cooled down`,
      message: `The processor of ${node} is down to ${degrees(value)}, below its limit of ${degrees(threshold)}.`,
    }),
  },
  quota_exceeded: { now: quotaText, over: quotaOverText },
  error_spike: {
    now: ({ node, value, threshold, detail }) => ({
      title: `${percent(value)} of operations fail on ${node}`,
      message: `${percent(value)} of the operations of ${node} in the last minute failed${outOf(detail)}; the limit is ${percent(threshold)}.`,
    }),
    over: ({ node, value, threshold }) => ({
      title: `Operations on ${node} succeed again`,
      message: `${percent(value)} of the operations of ${node} in the last minute failed, below the limit of ${percent(threshold)}.`,
    }),
  },
  service_restart: {
    now: ({ node, detail }) => ({
      title: detail["machine"] === "restarted" ? `The machine of ${node} restarted` : `${node} restarted`,
      message: `${detail["machine"] === "restarted" ? `The machine of ${node}` : `The service of ${node}`} restarted, and nobody had asked for it.`,
    }),
    over: ({ node }) => ({
      title: `${node} has stayed up`,
      message: `${node} has stayed up for 10 min since its restart.`,
    }),
  },
  ip_mismatch: { now: otherAddressText },
  mock_token: { now: mockTokenText },
  auth_mock: {
    now: ({ node }) => ({
      title: `${node} accepts mock sign-ins`,
      message: `${node} runs with SVC_AUTH_MOCK: whoever reaches it can sign in as anybody. Start it without for real use.`,
    }),
    over: ({ node }) => ({
      title: `${node} no longer accepts mock sign-ins`,
      message: `${node} runs without SVC_AUTH_MOCK.`,
    }),
  },
  default_password: {
    now: () => ({
      title: "The built-in administrator password is in force",
      message:
        "ADMIN_PASSWORD_HASH is not set, so the built-in password opens the console, from this machine only. " +
        "Make a hash with `grove admin hash-password` and set it.",
    }),
    over: () => ({
      title: "An administrator password is set",
      message: "The built-in password is out of force.",
    }),
  },
  host_key_changed: {
    now: ({ node, detail }) => ({
      title: `The SSH host key of ${node} changed`,
      message: `${node} showed another SSH host key than the one that is pinned${seen(detail["fingerprint"])}; nothing was run there. Find out why before you pin the new one.`,
    }),
  },
  cert_expiring: {
    now: ({ node, value, detail }) => ({
      title:
        (value ?? 0) < 0 ? `The certificate of ${node} has ended` : `The certificate of ${node} ends soon`,
      message:
        (value ?? 0) < 0
          ? `The certificate of ${node} has ended: others refuse to talk to it. Renew it now.`
          : `The certificate of ${node} ends in ${value === 0 ? "less than a day" : days(value)}. ${detail["authority"] === undefined ? "One that the cluster's authority issued is renewed by itself: find out why this one is not. Renew one of another authority there." : "Make a new one in time: every certificate of the cluster ends with it."}`,
    }),
    over: ({ node, value }) => ({
      title: `The certificate of ${node} is renewed`,
      message: `The certificate of ${node} is good for ${days(value)}.`,
    }),
  },
  clock_skew: {
    now: ({ node, value, threshold }) => ({
      title: `The clock of ${node} is off by ${seconds(value)}`,
      message: `The clock of ${node} differs from the MetaServer's by ${seconds(value)}, more than ${seconds(threshold)}. Tokens may be refused; check its time service.`,
    }),
    over: ({ node, value }) => ({
      title: `The clock of ${node} is right again`,
      message: `The clock of ${node} differs from the MetaServer's by ${seconds(value)}.`,
    }),
  },
  quota_drift: {
    now: ({ node, value }) => ({
      title: `Counters of ${node} are off${by(value)}`,
      message: `Counting files, trash and unfinished uploads of ${node} anew gave other numbers than are kept${by(value)}. Stop it and run \`grove fsck\` there.`,
    }),
    over: ({ node }) => ({
      title: `Counters of ${node} are right again`,
      message: `Counting files, trash and unfinished uploads of ${node} anew gave what is kept.`,
    }),
  },
  corruption: {
    now: ({ node, value }) => ({
      title: `${node} has ${count(value, "damaged file")}`,
      message: `${node} has found stored bytes of ${count(value, "file")} to be wrong and refuses to serve them. Put these files back from a backup.`,
    }),
    over: ({ node }) => ({
      title: `${node} has no damaged files any more`,
      message: `All files of ${node} that were damaged are replaced or gone.`,
    }),
  },
  storage_failed: {
    now: ({ node }) => ({
      title: `${node} takes no more writes`,
      message: `A flush to the disk of ${node} has failed, so it serves reads only. Check the disk, then restart it.`,
    }),
    over: ({ node }) => ({
      title: `${node} takes writes again`,
      message: `${node} was restarted and takes writes again.`,
    }),
  },
  storage_reserve: { now: reserveText, over: reserveOverText },
  metaserver_offline: { now: metaServerText, over: metaServerOverText },
  inodes_low: {
    now: ({ node, value, threshold, detail }) => ({
      title: `${node} runs out of inodes`,
      message: `The filesystem of ${node} has ${percent(value)} of its inodes free${inodes(detail["free_inodes"])}, below its limit of ${percent(threshold)}. Without any it takes no new file above 64 KiB, however many bytes are free: remove small files beside Grove's, or move it to a filesystem with more inodes.`,
    }),
    over: ({ node, value }) => ({
      title: `${node} has inodes again`,
      message: `The filesystem of ${node} has ${percent(value)} of its inodes free.`,
    }),
  },
  snapshot_reset: {
    now: ({ detail }) => ({
      title: "The console began a file anew",
      message: `${detail["file"] ?? "A file"} could not be read and was set aside${kept(detail["kept"])}; the console began ${detail["began"] ?? "an empty one"}.`,
    }),
  },
  action_failed: {
    now: ({ node, detail }) => ({
      title: `An action failed${node === "" ? "" : ` on ${node}`}`,
      message: `${detail["action"] ?? "An action"} failed${node === "" ? "" : ` on ${node}`}${because(detail["reason"])}. This ends once the same succeeds there.`,
    }),
  },
  login_failures: { now: loginText },
  bad_metrics: {
    now: ({ node, value, detail }) => ({
      title: `${node} reports values that cannot be`,
      message: `${count(value, "field")} of what ${node} reports ${value === 1 ? "is" : "are"} missing or not valid and count${value === 1 ? "s" : ""} as unknown${named(detail["fields"])}. Its version may not fit.`,
    }),
    over: ({ node }) => ({
      title: `${node} reports valid values again`,
      message: `All fields that ${node} reports are valid.`,
    }),
  },
  node_restored: { now: restoreText },
  audit_broken: {
    now: ({ node, detail }) => ({
      title: `The audit log of ${node} was changed`,
      message: `What ${node} shows of its audit log does not go on from what the console has gathered${because(detail["reason"])}. Compare both with \`grove audit verify\`.`,
    }),
  },
};

function reserveText({ node, detail }: TextFacts): AlertText {
  const [usable, reserve] = [detail["usable_bytes"], detail["reserve_bytes"]];
  const of = reserve === undefined ? "" : ` of ${bytes(reserve)}`;
  if (Number(usable ?? 1) === 0) {
    return {
      title: `${node} refuses uploads`,
      message: `${node} refuses uploads now: its disk is down to the reserve${of} that it keeps free. Reading and deleting go on. Free space there, or give it a larger disk.`,
    };
  }
  const left = usable === undefined ? "little" : bytes(usable);
  const days = detail["full_in_days"];
  const when = typeof days === "number" ? ` At this pace that is in ${span(days * 86_400)}.` : "";
  return {
    title: `${node} has ${left} left for uploads`,
    message: `${node} has ${left} left above the reserve${of} that it keeps free, and refuses uploads once that is gone.${when}`,
  };
}

function reserveOverText({ node, detail }: TextFacts): AlertText {
  const usable = detail["usable_bytes"];
  return {
    title: `${node} has room for uploads again`,
    message: `${node} has ${usable === undefined ? "enough" : bytes(usable)} above the reserve that it keeps free.`,
  };
}

function quotaText({ username, severity, value, detail }: TextFacts): AlertText {
  const who = username ?? "A user";
  const limit = bytes(detail["quota_bytes"]);
  const used = bytes(detail["used_bytes"]);
  const refused = severity === "critical" ? " New files are refused." : "";
  return {
    title: `${who} used ${percent(value)} of the quota`,
    message: `${who} used ${percent(value)} of ${limit} (${used}${trash(detail["trash_bytes"])}).${refused}`,
  };
}

function quotaOverText({ username, value, detail }: TextFacts): AlertText {
  const who = username ?? "A user";
  return {
    title: `${who} is below the quota again`,
    message: `${who} uses ${value === undefined ? "less than 95 %" : percent(value)} of ${bytes(detail["quota_bytes"])}.`,
  };
}

function otherAddressText({ node, username, value, detail }: TextFacts): AlertText {
  const [bound, other] = [detail["ip_bound"], detail["ip_seen"]];
  const from = other === undefined ? "another address" : `${other}`;
  const than = bound === undefined ? "" : ` instead of ${bound}`;
  return {
    title: `A session of ${username ?? "a user"} came from another address`,
    message: `${node} refused ${count(value ?? 1, "request")} with a session of ${username ?? "a user"} from ${from}${than}. The token may be stolen, or the network of that client changes its address.`,
  };
}

function mockTokenText({ node, value, detail }: TextFacts): AlertText {
  const where = String(detail["server"] ?? node);
  return {
    title: `Somebody tried a mock token on ${where}`,
    message: `${where.charAt(0).toUpperCase()}${where.slice(1)} rejected ${count(value ?? 1, "mock token")}${fromAddress(detail["ip_seen"])}. Only an attacker, or a client that is set up for tests, sends one.`,
  };
}

function loginText({ node, value, detail }: TextFacts): AlertText {
  const where = node === "" ? "the console" : `${node} with an administrator's password`;
  return {
    title: `${count(value ?? 1, "failed sign-in")} to ${node === "" ? "the console" : node}`,
    message: `${count(value ?? 1, "attempt")} to sign in to ${where} failed${lastFrom(detail["address"])}.`,
  };
}

function percent(value: number | undefined): string {
  if (value === undefined) return "an unknown share";
  if (value > PERCENT_TOLD_MAX) return `over ${PERCENT_TOLD_MAX} %`;
  // Rounds to one decimal, but not down to the limit: 95.01 % is above 95 %.
  const rounded = Math.round(value * 10) / 10;
  return `${Number.isInteger(rounded) ? Math.round(value * 100) / 100 : rounded} %`;
}

function degrees(value: number | undefined): string {
  return value === undefined ? "an unknown temperature" : `${Math.round(value * 10) / 10} °C`;
}

function days(value: number | undefined): string {
  return count(value === undefined ? undefined : Math.floor(value), "day");
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? "an unknown time" : `${Math.round(Math.abs(ms) / 100) / 10} s`;
}

function count(value: number | undefined, noun: string): string {
  if (value === undefined) return `some ${noun}s`;
  return `${value.toLocaleString("en-US")} ${noun}${value === 1 ? "" : "s"}`;
}

/** Byte counts above 2^53 - 1 are decimal strings (T17). */
function bytes(value: string | number | undefined): string {
  if (value === undefined) return "an unknown size";
  return formatBytes(typeof value === "number" ? value : BigInt(value));
}

function cannotReach(users: Part): string {
  if (typeof users !== "number" || users === 0) return "";
  return ` ${count(users, "user")} cannot reach their files.`;
}

function after(away: Part): string {
  return typeof away === "number" ? ` after ${span(away)}` : "";
}

function free(detail: TextFacts["detail"]): string {
  const [left, total] = [detail["free_bytes"], detail["total_bytes"]];
  return left === undefined || total === undefined ? "" : `; ${bytes(left)} of ${bytes(total)} are free`;
}

function fills(inDays: Part): string {
  return typeof inDays === "number" ? ` At this pace it is full in ${span(inDays * 86_400)}.` : "";
}

function outOf(detail: TextFacts["detail"]): string {
  const [errors, operations] = [detail["errors"], detail["operations"]];
  return errors === undefined || operations === undefined ? "" : ` (${errors} of ${operations})`;
}

function inodes(free: Part): string {
  return free === undefined ? "" : ` (${Number(free).toLocaleString("en-US")})`;
}

function trash(trashBytes: Part): string {
  return trashBytes === undefined || trashBytes === 0 ? "" : `, of which ${bytes(trashBytes)} are trash`;
}

function seen(fingerprint: Part): string {
  return fingerprint === undefined ? "" : ` (${fingerprint})`;
}

function kept(as: Part): string {
  return as === undefined ? "" : ` as ${as}`;
}

function by(value: number | undefined): string {
  return value === undefined ? "" : ` by ${formatBytes(value)}`;
}

function named(fields: Part): string {
  return fields === undefined ? "" : ` (${fields})`;
}

function fromAddress(address: Part): string {
  return address === undefined ? "" : ` from ${address}`;
}

function lastFrom(address: Part): string {
  return address === undefined ? "" : `, the last from ${address}`;
}
