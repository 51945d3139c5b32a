// Runs operations on the server that holds a root, with retries, new sessions and moved roots.

import type { Clock } from "#base/clock.ts";
import { type ErrorCode, GroveError, isGroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { currentRequestId, makeRequestId, withRequestId } from "#base/request-scope.ts";
import { ClientError, isClientError, UnknownOutcome } from "#client/terminal/client-error.ts";
import {
  ATTEMPTS_MAX,
  CALL_TIMEOUT_MS,
  MOVES_MAX,
  RETRY_FIRST_MS,
  RETRY_LONGEST_MS,
  UNLIKELY_ATTEMPTS_MAX,
} from "#client/terminal/limits.ts";
import type { Client, GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { callMetadata } from "./call-metadata.ts";
import { explain } from "./error-text.ts";
import { FileServerLink, type LinkDeps, type OpenSession } from "./file-server-link.ts";
import { refusalOf, wasUnseen } from "./refusal.ts";
import { formatRemotePath, type RemotePath } from "./remote-path.ts";
import type { Route } from "./route-cache.ts";
import type { Router } from "./routing.ts";

/** The server that holds the root, as an operation gets it, with the options of its calls. */
export interface Server {
  readonly address: string;
  readonly username: string;
  readonly channel: GrpcChannel;
  readonly files: Client<typeof FileServer>;
  /** The session, the signal and a time limit; for calls without a stream. */
  readonly unary: CallOptions;
  /** The same without a time limit; for streams. */
  readonly stream: CallOptions;
  /** Reports progress of the operation: the next failure gets the whole patience again. */
  readonly progressed: () => void;
}

/** How an operation may be repeated when the server does not answer. */
export interface RetryPolicy {
  /** False for operations that must not run twice: they fail when their outcome is unknown. */
  readonly isRepeatable: boolean;
  /** True when even a refused operation cannot run again, since its bytes are gone or were given out. */
  readonly isConsumed?: boolean;
  /** Attempts in all, within the patience; 1 for operations that cannot be sent twice. */
  readonly attempts: number;
}

/** For reads and other idempotent operations of interactive commands. */
export const SHORT: RetryPolicy = { isRepeatable: true, attempts: ATTEMPTS_MAX };
/** For transfers. */
export const LONG: RetryPolicy = { isRepeatable: true, attempts: ATTEMPTS_MAX };
/** For moving and deleting: repeated only when the attempt was not sent, or was refused. */
export const ONCE: RetryPolicy = { isRepeatable: false, attempts: ATTEMPTS_MAX };

const SESSION_CODES: readonly ErrorCode[] = [
  "SESSION_MISSING",
  "SESSION_UNKNOWN",
  "SESSION_IDLE",
  "SESSION_EXPIRED",
  "SESSION_EVICTED",
  "IP_MISMATCH",
];

const PASSING_CODES: readonly ErrorCode[] = [
  "NODE_DRAINING",
  "STARTING",
  "OVERLOADED",
  "STORE_UNAVAILABLE",
  "IDP_UNAVAILABLE",
  "RATE_LIMITED",
  "CHECKSUM_MISMATCH",
];

const PATH_CODES: readonly ErrorCode[] = [
  "NOT_OWNER",
  "NOT_SHARED",
  "NO_SUCH_PATH",
  "PATH_EXISTS",
  "NOT_EMPTY",
  "IS_DIRECTORY",
  "NOT_DIRECTORY",
  "ETAG_MISMATCH",
  "LOCKED",
  "NO_SUCH_LOCK",
  "SHARE_LIMIT",
  "BAD_NAME",
  "BAD_ARGUMENT",
  "CORRUPT",
];

/** Their texts are fixed to the letter (spec 7), so only the path is added to them. */
const SPACE_CODES: readonly ErrorCode[] = ["QUOTA_EXCEEDED", "INODE_LIMIT", "DISK_RESERVE"];

/** Dependencies of a cluster. */
export interface ClusterDeps extends LinkDeps {
  readonly router: Router;
  readonly random: Random;
  /** Called before an operation is retried, with the reason in words. */
  readonly onRetry?: (why: string, wait: { readonly waitMs: number; readonly leftMs: number }) => void;
  readonly clock: Pick<Clock, "steadyMs">;
  /** How long an operation is retried while the server does not answer. */
  readonly patienceMs: number;
  /** Called with each request's id, which the servers' logs name too. */
  readonly onRequest?: (id: string, address: string) => void;
}

/** The state of one operation's retries. */
interface Progress {
  attempts: number;
  /** Steady time of the first failure since the last progress. */
  failingSinceMs: number | undefined;
  moves: number;
  renewals: number;
  /** True once the MetaServer was asked whether another server holds the missing root. */
  hasLookedElsewhere: boolean;
  route: Route | undefined;
}

function noProgress(): Progress {
  return {
    attempts: 0,
    failingSinceMs: undefined,
    moves: 0,
    renewals: 0,
    hasLookedElsewhere: false,
    route: undefined,
  };
}

/** Connections to the servers of a cluster, shared by all operations of the program. */
export class Cluster {
  readonly #deps: ClusterDeps;
  readonly #links = new Map<string, FileServerLink>();
  /** True once a server has answered: what fails from then on is no typing error. */
  #hasReached = false;

  constructor(deps: ClusterDeps) {
    this.#deps = deps;
  }

  get router(): Router {
    return this.#deps.router;
  }

  /** The link to a FileServer, made on first use. */
  link(address: string, fsId = ""): FileServerLink {
    let link = this.#links.get(address);
    if (link === undefined) {
      link = new FileServerLink(address, this.#deps);
      this.#links.set(address, link);
    }
    if (fsId !== "") link.fsId = fsId;
    return link;
  }

  /** In a door: goes on with all sessions by fresh tickets. Rejects with the first failure, after all. */
  async prolong(): Promise<void> {
    const ends = await Promise.allSettled([...this.#links.values()].map((link) => link.prolong()));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * Runs an operation on the server that holds a root (empty: one's own). Renews a lost session silently,
   * follows a moved root (T20 to T22), and retries a silent server within the patience. Rejects with
   * GroveError or ClientError.
   */
  run<T>(root: string, patience: RetryPolicy, operation: (server: Server) => Promise<T>): Promise<T> {
    return withRequestId(makeRequestId(), () => this.#run(root, patience, operation));
  }

  /** Asks MetaServers something that may be asked twice, again within the patience while none answers. */
  ask<T>(question: (router: Router) => Promise<T>): Promise<T> {
    return withRequestId(makeRequestId(), async () => {
      const progress = noProgress();
      for (;;) {
        try {
          const answer = await question(this.#deps.router);
          this.#hasReached = true;
          return answer;
        } catch (error) {
          this.#deps.signal.throwIfAborted();
          await this.#tryLater(error, progress, SHORT, false);
        }
      }
    });
  }

  async #run<T>(root: string, patience: RetryPolicy, operation: (server: Server) => Promise<T>): Promise<T> {
    const progress = noProgress();
    for (;;) {
      let session: OpenSession | undefined;
      try {
        // What is at hand is used without a wait: a call of a door passes here twice for a small file.
        progress.route ??= this.#deps.router.known(root) ?? (await this.#deps.router.find(root));
        const link = this.link(progress.route.address, progress.route.fsId);
        session = link.session ?? (await link.open());
        this.#deps.onRequest?.(currentRequestId() ?? "", session.address);
        const result = await operation(this.#serverOf(session, progress));
        this.#hasReached = true;
        return result;
      } catch (error) {
        await this.#heal(await refusalOf(error, progress.route?.address ?? "of the cluster"), {
          progress,
          patience,
          session,
        });
      }
    }
  }

  /**
   * The same for an operation on one path, which a refusal then names, and where it would go. One because of a lock
   * names what is locked.
   */
  async runAt<T>(
    place: RemotePath & { readonly targetPath?: string },
    patience: RetryPolicy,
    operation: (server: Server) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.run(place.root, patience, operation);
    } catch (error) {
      if (!isGroveError(error, ...PATH_CODES, ...SPACE_CODES)) throw error;
      const path = formatRemotePath(place);
      const isNamed = SPACE_CODES.includes(error.code) || error.message.includes(path);
      // A lock may lie above or below, or where something is moved to.
      const { locked_path: locked } = error.metadata;
      const named = locked === undefined ? way(place) : formatRemotePath({ root: place.root, path: locked });
      const message = isNamed ? error.message : `${named}: ${error.message}`;
      throw new GroveError(error.code, message, { metadata: { ...error.metadata, path }, cause: error });
    }
  }

  /** Closes every connection. */
  close(): void {
    this.#deps.router.close();
    for (const link of this.#links.values()) link.close();
  }

  #serverOf(session: OpenSession, progress: Progress): Server {
    const { signal, door } = this.#deps;
    const metadata = { ...callMetadata(session.token), ...door?.callMetadata() };
    // A door closes a person's connections as well, and a listener for each of many short calls costs much.
    const ends = door === undefined ? { signal } : {};
    return {
      address: session.address,
      username: session.username,
      channel: session.channel,
      files: session.files,
      unary: { metadata, timeoutMs: CALL_TIMEOUT_MS, ...ends },
      stream: { metadata, ...ends },
      progressed() {
        progress.attempts = 0;
        progress.failingSinceMs = undefined;
        progress.moves = 0;
        progress.renewals = 0;
      },
    };
  }

  /** Makes the next attempt possible, or throws the failure. */
  async #heal(
    failure: unknown,
    at: { progress: Progress; patience: RetryPolicy; session: OpenSession | undefined },
  ): Promise<void> {
    const { progress, patience, session } = at;
    this.#deps.signal.throwIfAborted();
    const mayRunAgain = session === undefined || patience.isConsumed !== true;
    if (!mayRunAgain && isGroveError(failure, "WRONG_NODE", ...SESSION_CODES)) {
      // Where no other session opens, that refusal says why this one has ended.
      if (failure.code !== "WRONG_NODE") await this.#renew(session, failure);
      throw brokenOff(failure);
    }
    if (mayRunAgain && failure instanceof GroveError) {
      if (SESSION_CODES.includes(failure.code) && session !== undefined && progress.renewals < 2) {
        progress.renewals++;
        await this.#renew(session, failure);
        return;
      }
      const address = failure.metadata["address"];
      if (failure.code === "WRONG_NODE" && address !== undefined && progress.moves < MOVES_MAX) {
        progress.moves++;
        const root = progress.route?.root ?? "";
        const { door, router } = this.#deps;
        // A ticket names its server, which an address alone does not.
        progress.route = door === undefined ? await router.moved(root, address) : await router.ask(root);
        return;
      }
      if (await this.#isElsewhere(failure, progress)) return;
    }
    await this.#tryLater(failure, progress, patience, session !== undefined);
  }

  #renew(session: OpenSession, refusal: GroveError): Promise<void> {
    return this.link(session.address).renew(session, explain(refusal).what.replace(/\.$/, ""));
  }

  /**
   * True when another server holds the root. A server without another user's root refuses as if nothing were
   * shared (D1), so the cached route may be old.
   */
  async #isElsewhere(failure: GroveError, progress: Progress): Promise<boolean> {
    const { route } = progress;
    const isHidden = failure.code === "NOT_SHARED" || failure.code === "NOT_OWNER";
    if (!isHidden || route === undefined || route.root === "" || progress.hasLookedElsewhere) return false;
    progress.hasLookedElsewhere = true;
    if (this.#deps.router.isFresh(route)) return false;
    const other = await this.#deps.router.askAgain(route);
    if (other === undefined) return false;
    progress.route = other;
    return true;
  }

  async #tryLater(
    failure: unknown,
    progress: Progress,
    patience: RetryPolicy,
    hadSession: boolean,
  ): Promise<void> {
    // The server has lost the root and does not know who has it: the MetaServer soon does.
    const isLost =
      isGroveError(failure, "WRONG_NODE") &&
      failure.metadata["address"] === undefined &&
      this.#deps.profile.fileserver === undefined;
    const isPassing =
      failure instanceof GroveError
        ? isLost || PASSING_CODES.includes(failure.code)
        : isClientError(failure, "NETWORK");
    // Without a session the operation was not sent, so it may be sent again.
    const mayRepeat =
      patience.isRepeatable ||
      !hadSession ||
      ((failure instanceof GroveError || wasUnseen(failure)) && patience.isConsumed !== true);
    if (isClientError(failure, "NETWORK") && !mayRepeat && patience.isConsumed !== true) {
      throw new UnknownOutcome(failure);
    }
    if (!isPassing || !mayRepeat) throw failure;
    progress.attempts++;
    if (progress.route !== undefined && (isLost || !(failure instanceof GroveError))) {
      const other = await this.#deps.router.askAgain(progress.route);
      if (other !== undefined && progress.moves < MOVES_MAX) {
        progress.moves++;
        progress.route = other;
        return;
      }
    }
    const nowMs = this.#deps.clock.steadyMs();
    progress.failingSinceMs ??= nowMs;
    const leftMs = this.#deps.patienceMs - (nowMs - progress.failingSinceMs);
    const attempts = !this.#hasReached && isLikelyATypo(failure) ? UNLIKELY_ATTEMPTS_MAX : patience.attempts;
    if (progress.attempts >= attempts || leftMs <= 0) throw failure;
    const waitMs = Math.min(leftMs, this.#waitMs(progress.attempts));
    this.#deps.onRetry?.(explain(failure).what, { waitMs, leftMs });
    await this.#sleep(waitMs);
  }

  #waitMs(attempt: number): number {
    const baseMs = Math.min(RETRY_FIRST_MS * 2 ** (attempt - 1), RETRY_LONGEST_MS);
    // Half to the whole of the delay, so that many clients do not retry at the same moment.
    return baseMs * (0.5 + this.#deps.random.bytes(1).readUInt8() / 512);
  }

  async #sleep(ms: number): Promise<void> {
    const { setTimeout: wait } = await import("node:timers/promises");
    await wait(ms, undefined, { signal: this.#deps.signal });
  }
}

/** "/a.txt", or "/a.txt to /b.txt": either may be what a refusal means. */
function way({ root, path, targetPath }: RemotePath & { readonly targetPath?: string }): string {
  const from = formatRemotePath({ root, path });
  return targetPath === undefined ? from : `${from} to ${formatRemotePath({ root, path: targetPath })}`;
}

/** The failure of an operation in the middle of bytes that cannot be read or given out once more. */
function brokenOff(cause: GroveError): ClientError {
  const todo = "Begin it again.";
  return new ClientError("NETWORK", "the transfer broke off and cannot go on by itself", { todo, cause });
}

/**
 * True for a host name that nobody knows, or another protocol: more likely a typing error than an outage, in which
 * the names' own server is away (EAI_AGAIN).
 */
function isLikelyATypo(failure: unknown): boolean {
  if (!isClientError(failure, "NETWORK") || !(failure.cause instanceof Error)) return false;
  const { cause: reason } = failure;
  if ("kind" in reason && reason.kind === "no-tls") return true;
  return [reason, reason.cause].some((error) => (error as NodeJS.ErrnoException)?.code === "ENOTFOUND");
}
