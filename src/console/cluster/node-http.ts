// One GET to a node's metrics listener: plain HTTP, checked address, bounded size and time (M-04).
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { Clock } from "#base/clock.ts";
import { formatHostPort } from "#base/node-id.ts";
import type { AnswerPool, HeldAnswer } from "./answer-pool.ts";
import { CONSOLE_NODES_MAX } from "./cluster-state.ts";
import { PollError } from "./poll-error.ts";

/** Bytes of the head of a node's answer. */
const NODE_ANSWER_HEAD_MAX_BYTES = 16_384;

/** The address of a node's metrics listener. */
export interface NodeTarget {
  /** An IP address, so that no name is looked up. */
  readonly ip: string;
  /** The metrics port. */
  readonly port: number;
  /** The host as the node advertises it, for the Host header. */
  readonly host: string;
}

/** A request to a node. */
export interface NodeRequest {
  /** Path with query, from "/" on. */
  readonly path: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** A node's answer. */
export interface NodeAnswer {
  readonly body: Buffer;
  readonly etag: string | undefined;
}

/** What a client is made from. */
export interface NodeHttpDeps {
  readonly clock: Clock;
  readonly pool: AnswerPool;
  /** SVC_METRICS_TOKEN, sent with every request (T8). Undefined: none is sent. */
  readonly token: string | undefined;
}

/** Connections that are idle for this long are closed. */
const IDLE_TIMEOUT_MS = 30_000;
/** 1xx responses before the final one. */
const ANNOUNCEMENTS_MAX = 8;
/**
 * Pieces that any answer may have, beside one per fixed number of bytes: every piece costs time and memory.
 */
const PIECES_FREE = 1_000;
const PIECE_BYTES_MEAN = 256;
const PIECE_COST_BYTES = 128;
/** Content type of an acceptable answer. */
const JSON_TYPE = /^application\/json(?:\s*;|$)/i;

/** HTTP client for nodes. Keeps one connection to each while requests come. */
export class NodeHttp {
  readonly #deps: NodeHttpDeps;
  readonly #agent = new Agent({
    keepAlive: true,
    maxTotalSockets: CONSOLE_NODES_MAX,
    maxFreeSockets: 1,
    timeout: IDLE_TIMEOUT_MS,
  });

  constructor(deps: NodeHttpDeps) {
    this.#deps = deps;
  }

  /**
   * The answer, a 200 in JSON. Rejects with PollError for other statuses, redirects, other or compressed
   * content, and too many bytes. Also rejects at the end of the time, however many bytes have come.
   */
  async get(target: NodeTarget, ask: NodeRequest): Promise<NodeAnswer> {
    const endMs = this.#deps.clock.steadyMs() + ask.timeoutMs;
    try {
      return await this.#getOnce(target, ask, endMs);
    } catch (error) {
      // A node may close a kept connection in the moment in which it is reused.
      if (error instanceof StaleConnection) return this.#getOnce(target, ask, endMs);
      throw error;
    }
  }

  /** Closes every connection. */
  close(): void {
    this.#agent.destroy();
  }

  #getOnce(target: NodeTarget, ask: NodeRequest, endMs: number): Promise<NodeAnswer> {
    const { clock, pool, token } = this.#deps;
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        agent: this.#agent,
        host: target.ip,
        port: target.port,
        path: ask.path,
        maxHeaderSize: NODE_ANSWER_HEAD_MAX_BYTES,
        headers: {
          host: formatHostPort({ host: target.host, port: target.port }),
          accept: "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      });
      const held = pool.hold(() => end(new PollError("the answer was the largest of too many large ones")));
      const cancelTimer = clock.after(Math.max(0, endMs - clock.steadyMs()), () =>
        end(new PollError(`no full answer within ${ask.timeoutMs / 1_000} s`)),
      );
      let isEnded = false;
      const end = (outcome: NodeAnswer | PollError): void => {
        if (isEnded) return;
        isEnded = true;
        cancelTimer();
        held.release();
        if (!(outcome instanceof PollError)) return resolve(outcome);
        reject(outcome);
        request.destroy();
      };
      request.on("error", (error) => end(connectionError(error, request)));
      request.on("close", () => {
        if (!isEnded) end(new PollError("the connection was closed"));
      });
      let announcements = 0;
      request.on("information", () => {
        announcements++;
        if (announcements > ANNOUNCEMENTS_MAX) end(new PollError("the node announces answers without end"));
      });
      request.on("response", (response) => readBody(response, ask.maxBytes, held, end));
      request.end();
    });
  }
}

/** A kept connection turned out to be closed before any answer. */
class StaleConnection extends PollError {}

function connectionError(error: NodeJS.ErrnoException, request: ClientRequest): PollError {
  const isReset = error.code === "ECONNRESET" || error.code === "EPIPE";
  if (request.reusedSocket && isReset) return new StaleConnection("the connection was closed");
  // The code alone, because a parser's message quotes what the node sent.
  return new PollError(
    CONNECTION_ERRORS[error.code ?? ""] ?? `the connection failed (${error.code ?? "unknown"})`,
  );
}

const CONNECTION_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused: nothing listens on the metrics port",
  ECONNRESET: "the connection was closed",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "the host did not answer",
  HPE_HEADER_OVERFLOW: "the head of the answer is too large",
};

function readBody(
  response: IncomingMessage,
  maxBytes: number,
  held: HeldAnswer,
  end: (outcome: NodeAnswer | PollError) => void,
): void {
  const problem = headProblem(response, maxBytes);
  if (problem !== undefined) return end(new PollError(problem));
  const pieces: Buffer[] = [];
  let length = 0;
  response.on("data", (piece: Buffer) => {
    length += piece.length;
    if (length > maxBytes) return end(new PollError(`the answer has more than ${maxBytes} bytes`));
    if (pieces.length > PIECES_FREE + length / PIECE_BYTES_MEAN)
      return end(new PollError("the answer is in crumbs"));
    // The pool refuses a piece only after it has aborted the answer.
    if (held.grow(piece.length + PIECE_COST_BYTES)) pieces.push(keepable(piece));
  });
  response.on("end", () => {
    if (!response.complete) return end(new PollError("the answer broke off"));
    const body = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
    end({ body, etag: response.headers.etag });
  });
  response.on("error", () => end(new PollError("the answer broke off")));
}

/** Copies a small piece of a larger buffer, so that it does not keep the whole in memory. */
function keepable(piece: Buffer): Buffer {
  return piece.length * 4 < piece.buffer.byteLength ? Buffer.from(piece) : piece;
}

function headProblem(response: IncomingMessage, maxBytes: number): string | undefined {
  const { statusCode, headers } = response;
  if (statusCode !== 200) return `the answer has status ${statusCode}`;
  if (!JSON_TYPE.test(headers["content-type"] ?? "")) return "the answer is not in JSON";
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity")
    return "the answer is compressed, which nobody asked for";
  if (Number(headers["content-length"] ?? 0) > maxBytes) return `the answer has more than ${maxBytes} bytes`;
  return undefined;
}
