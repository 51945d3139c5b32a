// Explains a refusal in two sentences, what happened and what to do, from its code and numbers.
import { systemClock } from "#base/clock.ts";
import { type ErrorCode, type ErrorMetadata, GroveError } from "#base/errors.ts";
import { shellWord } from "#base/shell-word.ts";
import {
  ClientError,
  type ClientErrorCode,
  HintedRefusal,
  isLocalFailure,
} from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { explainInodes, explainQuota } from "#client/terminal/quota-text.ts";

/** The two sentences of a refusal. */
export interface Explanation {
  readonly what: string;
  /** Empty when there is nothing to do. */
  readonly todo: string;
}

/** A refusal as its explanation reads it. */
interface Refusal {
  readonly message: string;
  readonly metadata: ErrorMetadata;
}

/** What to do about a missing path with a wildcard; undefined without one. */
function wildcardHint(text: string): string | undefined {
  if (!/[*?]/.test(text)) return undefined;
  return "Grove does not expand wildcards such as '*': name each file, or the folder that they are in.";
}

type Explain = (refusal: Refusal) => Explanation;

const SIGN_IN = "Sign in again: grove login";
const LATER = "Try again in a moment.";
const ADMINISTRATOR = "Tell the administrator of the cluster.";

/** The sentence with a capital and a full stop. The name of a file at its beginning keeps its letters. */
function sentence(text: string, beginsWithName = false): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const capital =
    !beginsWithName && /^[a-z]+(?: |$)/.test(trimmed)
      ? trimmed.charAt(0).toUpperCase() + trimmed.slice(1)
      : trimmed;
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

/** An explanation that repeats the server's message and adds what to do. */
const told =
  (todo: string): Explain =>
  ({ message }) => ({ what: sentence(message), todo });

/** The same for texts that section 7 of the specification fixes: they stay to the letter. */
const quoted =
  (todo: string): Explain =>
  ({ message }) => ({ what: `The server refused this: ${message}.`, todo });

/** An explanation in the client's words, with the path. */
const about =
  (what: string, todo: string): Explain =>
  ({ metadata }) => {
    const { path } = metadata;
    const text = what.charAt(0).toLowerCase() + what.slice(1);
    return { what: path === undefined ? what : `${path}: ${text}`, todo };
  };

/** An explanation in the client's words, since the server's say less. */
const fixed =
  (what: string, todo: string): Explain =>
  () => ({ what, todo });

/** A number of seconds in words, or other words where the number is missing. */
function timeOr(otherwise: string, seconds: string | undefined): string {
  const count = Number(seconds);
  if (!Number.isSafeInteger(count) || count <= 0) return otherwise;
  return count % 60 === 0 ? `${count / 60} minutes` : `${count} s`;
}

/** How long a server asks clients to wait, in words. */
const afterWait: Explain = ({ message, metadata }) => {
  const waitMs = Number(metadata["retry_after_ms"]);
  const wait = waitMs > 0 && waitMs < 86_400_000 ? `${Math.ceil(waitMs / 1_000)} s` : "a minute";
  return { what: sentence(message), todo: `Wait ${wait} and try again.` };
};

/** What to do about a lock: in one's own root the owner's command, elsewhere whom to ask. */
function unlockHint({ path = "", locked_path: locked }: ErrorMetadata): string {
  const wait = "Wait until they close it";
  if (locked === undefined) return `${wait}; the owner can end the lock: grove unlock --break`;
  if (!path.startsWith("/")) return `${wait}; the owner of these files can end the lock`;
  return `${wait}, or end the lock: grove unlock --break ${shellWord(locked)}`;
}

const EXPLAIN_REFUSAL: Readonly<Record<ErrorCode, Explain>> = {
  QUOTA_EXCEEDED: explainQuota,
  INODE_LIMIT: explainInodes,
  DISK_RESERVE: quoted(
    "That server takes no uploads from anybody until there is room: deleting works (grove rm, grove trash empty), or ask the administrator.",
  ),
  RATE_LIMITED: afterWait,
  SESSION_MISSING: fixed("You are not signed in.", SIGN_IN),
  SESSION_UNKNOWN: fixed("The server does not know your session; it has probably been restarted.", SIGN_IN),
  SESSION_IDLE: ({ metadata }) => ({
    what: `Your session ended because it was not used for ${timeOr("a while", metadata["idle_timeout_seconds"])}.`,
    todo: SIGN_IN,
  }),
  SESSION_EXPIRED: fixed("Your session has reached the end of its life.", SIGN_IN),
  SESSION_EVICTED: fixed("Your session was ended because you have signed in on five newer devices.", SIGN_IN),
  SESSION_TABLE_FULL: fixed("The server has as many sessions as it can hold.", LATER),
  IP_MISMATCH: fixed(
    "Your session belongs to another network address than the one you come from now.",
    SIGN_IN,
  ),
  NOT_OWNER: about(
    "Only the owner may do that, or there is nothing here that you may see.",
    "Ask the owner to do it.",
  ),
  NOT_SHARED: explainNotShared,
  NOT_ADMIN: quoted("Ask an administrator of the cluster."),
  USER_DISABLED: explainDisabled,
  NO_SUCH_PATH: ({ message }) => ({
    what: sentence(message),
    todo: wildcardHint(message) ?? "'grove ls' shows what is there.",
  }),
  PATH_EXISTS: told("Choose another name, or remove what is there first."),
  NOT_EMPTY: told("Add -r to delete a folder with all that is in it."),
  IS_DIRECTORY: told("Name a file; 'grove put' and 'grove get' move whole folders."),
  NOT_DIRECTORY: told("Name a folder; 'grove stat' shows what a path is."),
  ETAG_MISMATCH: told("Somebody has changed the file since you read it: look at it and try again."),
  NO_SUCH_LOCK: told("Lock it again if you still need to."),
  LOCKED: ({ message, metadata }) => ({ what: sentence(message), todo: unlockHint(metadata) }),
  SHARE_LIMIT: told("Share a folder above instead, or end shares that are not needed: grove unshare"),
  BAD_NAME: told("Choose another name."),
  BAD_ARGUMENT: told("See --help of this command."),
  OFFSET_MISMATCH: told("Try again."),
  NO_SUCH_UPLOAD: told("Send the file again from its start."),
  TOO_MANY_UPLOADS: told("Let those that were begun come to their end, or wait a day."),
  UPLOAD_TAKEN_OVER: fixed(
    "Another program of yours is uploading the same file to the same place.",
    "Let one of the two finish.",
  ),
  CHECKSUM_MISMATCH: fixed(
    "The bytes were damaged on their way to the server, which refused them.",
    "Try again.",
  ),
  CORRUPT: about(
    "The stored file is damaged: its bytes do not match their checksum, so none of the bad ones were sent.",
    "Put it again if you still have it, or ask the administrator for a backup.",
  ),
  WRONG_NODE: told("Try again; if it stays so, sign in again: grove login"),
  ROOT_LOST: told(
    "Ask the administrator of the cluster: whether they come back, or you begin with an empty root, is theirs to say.",
  ),
  NODE_DRAINING({ message, metadata }) {
    if (metadata["moving"] !== undefined)
      return { what: "These files are moving to another server.", todo: LATER };
    if (metadata["maintenance"] === undefined && metadata["new_users"] === undefined) {
      return { what: "The server is being taken out of service.", todo: LATER };
    }
    return { what: sentence(message), todo: "Try again then, or ask the administrator of the cluster." };
  },
  STARTING: told(LATER),
  IDP_UNAVAILABLE: fixed("The server cannot reach the identity provider.", LATER),
  CLIENT_ID_UNSET: fixed(
    "The server has no client id of the identity provider, so that nobody can sign in.",
    "The administrator must set IDP_CLIENT_ID.",
  ),
  TOKEN_REJECTED: explainToken,
  MOCK_TOKEN: fixed("The server does not accept mock tokens.", "Sign in without --mock: grove login"),
  CLIENT_CERT_REQUIRED: told("This call is for servers of the cluster."),
  NODE_ID_HELD: told(ADMINISTRATOR),
  FENCED: told(LATER),
  VERSION_MISMATCH: told("'grove --version' tells this program's; the administrator knows the cluster's."),
  CLUSTER_MISMATCH: told("Make a new profile: grove login --cluster FILE"),
  STORAGE_FAILED: fixed("The server's disk has failed, so it takes no more changes.", ADMINISTRATOR),
  DATA_IN_USE: told("Stop the process that holds it, or name another folder."),
  STORE_UNAVAILABLE: explainStore,
  OVERLOADED: fixed("The server has too much to do.", LATER),
  NOT_IMPLEMENTED: told("A newer version of the server may be able to do it."),
  INTERNAL: told(ADMINISTRATOR),
};

const EXPLAIN_CLIENT_ERROR: Readonly<Record<ClientErrorCode, string>> = {
  USAGE: "See --help of this command.",
  CANCELLED: "",
  NETWORK: "Check that the cluster runs and that you can reach it, then try again.",
  SIGN_IN_NEEDED: "Sign in: grove login",
  SIGN_IN_FAILED: "Try again: grove login",
  LOCAL_FILE: "",
  LOCAL_NOT_FOUND: "Check the path.",
  LOCAL_DENIED: "Check the permissions of the file and of its folder.",
  SOURCE_FAILED: "The same command goes on where it stopped, once the source answers again.",
  SERVER_BROKEN: "The server sent something that it should not: do not trust what it sent.",
  SERVER_DENIED: "Ask an administrator of the cluster.",
  SERVER_LIMIT: "This is no quota: try again, and if it stays so tell the administrator of the cluster.",
  SERVER_UNTRUSTED: "Do not go on before you know why.",
};

/** The directory, or what FileServers of the shared engine need: its database, its object store. */
function explainStore({ message }: Refusal): Explanation {
  const isDirectory = message === "" || /\bmeta(?:server|data store)\b/.test(message);
  const what = isDirectory ? "The cluster's directory does not answer." : message.replace(/; try again$/, "");
  return { what: sentence(what), todo: LATER };
}

/**
 * Another sign-in brings another token, but neither another key nor the subject that the address had before.
 */
function explainToken({ message, metadata }: Refusal): Explanation {
  const what = sentence(message);
  switch (metadata["claim"]) {
    case "kid":
      return { what, todo: "If it stays so, tell the administrator of the cluster." };
    case "sub": {
      const whom = metadata["ask"] ?? "the administrator of the cluster";
      return {
        what,
        todo: `Signing in once more does not help. If the files are yours and your account is a new one, ask ${whom} to give them to it.`,
      };
    }
    case "email": {
      const whom = metadata["ask"] ?? "the administrator of the cluster";
      return { what, todo: `Ask ${whom} to confirm it, then sign in again.` };
    }
    default:
      return { what, todo: SIGN_IN };
  }
}

/** Tells users with a session that their access has ended, and others nothing. */
function explainDisabled({ metadata }: Refusal): Explanation {
  const removedAtMs = Number(metadata["removed_at_ms"] ?? 0);
  if (!Number.isSafeInteger(removedAtMs) || removedAtMs <= 0) {
    return {
      what: "Your account is locked: an administrator of the cluster has closed it.",
      todo: "Your files are kept; ask an administrator.",
    };
  }
  return {
    what: "This address is retired: an administrator of the cluster has removed its user.",
    todo:
      removedAtMs > systemClock.wallMs()
        ? `The files are kept until ${localTime(removedAtMs)}; ask an administrator before then.`
        : "Nobody signs in with it until an administrator releases it.",
  };
}

function explainNotShared(refusal: Refusal): Explanation {
  const { group, role } = refusal.metadata;
  if (group !== undefined) {
    const what = `Your role in the group ${group} no longer lets you do this.`;
    return about(what, `'grove group show ${group}' says who manages it.`)(refusal);
  }
  if (role === "read") {
    return about("Your role in this group is to read.", "Ask a member who manages it.")(refusal);
  }
  return refusal.metadata["has_ended"] === "true"
    ? about("This is no longer shared with you.", "Ask its owner.")(refusal)
    : about(
        "There is nothing here that you may see.",
        "'grove roots' lists what others share with you; else ask its owner to share it.",
      )(refusal);
}

/** The two sentences for a server's refusal that came as an answer (decision D1). */
export function explainRefusal(code: ErrorCode, refusal: Refusal): Explanation {
  return EXPLAIN_REFUSAL[code](refusal);
}

/** The two sentences for any error (decision D1). */
export function explain(error: unknown): Explanation {
  if (error instanceof HintedRefusal) return { ...EXPLAIN_REFUSAL[error.code](error), todo: error.todo };
  if (isLocalFailure(error)) return { what: sentence(error.message), todo: "" };
  if (error instanceof GroveError) return EXPLAIN_REFUSAL[error.code](error);
  if (error instanceof ClientError) {
    const what = sentence(error.message, error.about !== undefined);
    const wildcard = error.code === "LOCAL_NOT_FOUND" ? wildcardHint(error.about ?? "") : undefined;
    return { what, todo: error.todo ?? wildcard ?? EXPLAIN_CLIENT_ERROR[error.code] };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { what: sentence(message.split("\n", 1)[0] ?? ""), todo: "" };
}

/** An error as `--json` prints it on standard error (decision D24). */
export interface ErrorJson {
  readonly error: {
    /** A Grove code: a server's reason, or the client's own failure. */
    readonly code: string;
    /** The server's reason (decision D1); null for a failure without one. */
    readonly reason: ErrorCode | null;
    /** What happened. */
    readonly message: string;
    /** What to do; empty when there is nothing to do. */
    readonly hint: string;
    /** The numbers and names of the refusal. */
    readonly metadata: ErrorMetadata;
  };
}

/** An error as `--json` prints it on standard error (decision D24). */
export function errorJson(error: unknown): ErrorJson {
  const { what: message, todo: hint } = explain(error);
  if (error instanceof GroveError) {
    const { code, metadata } = error;
    return { error: { code, reason: isLocalFailure(error) ? null : code, message, hint, metadata } };
  }
  if (error instanceof ClientError) {
    return { error: { code: error.code, reason: null, message, hint, metadata: error.metadata } };
  }
  return { error: { code: "INTERNAL", reason: null, message, hint, metadata: {} } };
}
