// Tries sessions from outside the client: a list of the rig's own says which tokens are good.
import { SESSION_IDLE_TIMEOUT_MS, SESSIONS_PER_USER } from "#base/limits.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Scheduler, type SimulatedProcess, simulation } from "./scheduler.ts";
import type { SimulatedFileServer } from "./servers.ts";

/** Tolerance between the rig's clock and the server's sweep. */
const SLACK_MS = 61_000;
const CALL_LIMIT_MS = 8_000;
/** Answers of a call with a valid session: no fault, or a root that is elsewhere (or nowhere yet). */
const LET_IN = ["", "WRONG_NODE"];

interface KnownSession {
  readonly token: string;
  readonly server: number;
  readonly openedAtMs: number;
  /** Steady time of its last use that may have counted, and of the last that did. */
  lastUseAtMs: number;
  lastSureUseAtMs: number;
}

const USER_PREFIX = "sessions-";

/** True for users whose sessions are counted, so that nothing else may open one. */
export function isWatched(email: string): boolean {
  return email.startsWith(USER_PREFIX);
}

/** One user who opens sessions at one node and tries old ones. */
export class SessionsWatch {
  readonly #node: SimulatedFileServer;
  readonly #email: string;
  readonly #process: SimulatedProcess;
  readonly #foreigner: SimulatedProcess;
  readonly #scheduler: Scheduler = simulation();
  readonly #violation: (text: string) => void;
  /** Oldest first. */
  #sessions: KnownSession[] = [];
  /** Registrations without an answer: each may have evicted a session. */
  #unknown = 0;
  #isLooking = false;
  tried = 0;

  constructor(node: SimulatedFileServer, host: string, violation: (text: string) => void) {
    this.#node = node;
    this.#email = `${USER_PREFIX}${node.id}@example.com`;
    this.#process = this.#scheduler.spawn(this.#email, host);
    this.#foreigner = this.#scheduler.spawn(`foreign ${this.#email}`, `${host}9`);
    this.#violation = violation;
  }

  /** Opens one more session, then tries the known ones: all of them, or some. */
  async look(options: { readonly all?: boolean } = {}): Promise<void> {
    // One at a time: the order in which sessions were opened must be known.
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#lookNow(options.all === true);
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookNow(isAll: boolean): Promise<void> {
    await this.#open();
    const foreign = this.#sessions[0];
    if (foreign !== undefined) await this.#try(foreign, this.#foreigner);
    const newestFirst = this.#sessions.toReversed();
    for (const [newer, session] of newestFirst.entries()) {
      // Tried rarely, so that some have time to expire.
      if (!isAll && newer > 0 && !this.#process.random.chance(0.3)) continue;
      await this.#try(session, this.#process, newer);
    }
    this.#sessions = this.#sessions.slice(-2 * SESSIONS_PER_USER);
  }

  async #open(): Promise<void> {
    const server = this.#node.starts;
    try {
      const { sessionToken: token } = await this.#with(this.#process, (channel) =>
        createClient(FileServer, channel).registerClient(
          { clientId: "watch" },
          { metadata: { authorization: `Bearer mock-jwt.${this.#email}` }, timeoutMs: CALL_LIMIT_MS },
        ),
      );
      const nowMs = this.#scheduler.nowMs;
      // The answering process is known only when it is the same before and after.
      if (server === this.#node.starts)
        this.#sessions.push({ token, server, openedAtMs: nowMs, lastUseAtMs: nowMs, lastSureUseAtMs: nowMs });
      else this.#unknown++;
    } catch {
      this.#unknown++;
    }
  }

  async #try(session: KnownSession, from: SimulatedProcess, newer = 0): Promise<void> {
    const beganAtMs = this.#scheduler.nowMs;
    const { starts } = this.#node;
    let reason = "";
    try {
      await this.#with(from, (channel) =>
        createClient(FileServer, channel).getQuota(
          {},
          { metadata: { authorization: `Bearer ${session.token}` }, timeoutMs: CALL_LIMIT_MS },
        ),
      );
    } catch (error) {
      reason = error instanceof StatusError ? (error.metadata.get("svc-reason") ?? "none") : String(error);
    }
    const isForeign = from === this.#foreigner;
    const isLetIn = LET_IN.includes(reason);
    const isAnswer = isLetIn || /^(?:SESSION_|IP_MISMATCH)/.test(reason);
    // Any other failure says nothing about the session: the call may have used it.
    if (!isForeign && !isAnswer) session.lastUseAtMs = this.#scheduler.nowMs;
    if (!isAnswer || starts !== this.#node.starts) return;
    this.tried++;
    const text = `the session of ${this.#email}, ${newer} newer ones, `;
    if (isForeign) {
      if (isLetIn) this.#violation(`${text}was accepted from another address`);
      return;
    }
    const idleAtLeastMs = beganAtMs - session.lastUseAtMs;
    const idleAtMostMs = this.#scheduler.nowMs - session.lastSureUseAtMs;
    const mustFail =
      session.server !== starts ||
      idleAtLeastMs > SESSION_IDLE_TIMEOUT_MS + SLACK_MS ||
      this.#livingSince(session) >= SESSIONS_PER_USER;
    const mustWork =
      session.server === starts &&
      idleAtMostMs < SESSION_IDLE_TIMEOUT_MS - SLACK_MS &&
      newer + this.#unknown < SESSIONS_PER_USER;
    if (isLetIn && mustFail)
      this.#violation(
        `${text}idle for ${idleAtLeastMs} ms, of start ${session.server} of ${starts}, was accepted`,
      );
    if (!isLetIn && mustWork)
      this.#violation(`${text}idle for at most ${idleAtMostMs} ms, was refused as ${reason}`);
    if (!isLetIn) return;
    session.lastUseAtMs = this.#scheduler.nowMs;
    session.lastSureUseAtMs = beganAtMs;
  }

  /** Number of sessions opened after this one that cannot have expired yet. */
  #livingSince(session: KnownSession): number {
    const youngMs = SESSION_IDLE_TIMEOUT_MS - SLACK_MS;
    const { nowMs } = this.#scheduler;
    const newer = this.#sessions.slice(this.#sessions.indexOf(session) + 1);
    return newer.filter(({ openedAtMs }) => nowMs - openedAtMs < youngMs).length;
  }

  async #with<T>(process: SimulatedProcess, call: (channel: GrpcChannel) => Promise<T>): Promise<T> {
    return this.#scheduler.within(process, async () => {
      const channel = new GrpcChannel({ addresses: [this.#node.address] });
      try {
        return await call(channel);
      } finally {
        channel.close();
      }
    });
  }
}
