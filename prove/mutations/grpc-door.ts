// Mutated gRPC calls on one connection, many at a time, and what is wrong with an answer.
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { Code, decodeMessage } from "#grpc/status.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { nastyHeader } from "./nasty-values.ts";
import type { RecordedCall } from "./recorded-calls.ts";
import { mutatedMessage, withNastyText } from "./wire-mutations.ts";

/** How long any answer may take. */
export const ANSWER_WITHIN_MS = 30_000;
/** The one malformed message for which gRPC itself asks for INTERNAL. */
const LAID_DOWN = "compressed message without grpc-encoding";

/** What was done to a call. */
export type Mutation = "protobuf" | "name" | "token" | "frames" | "headers";

/** A call as it is sent. */
interface WrongCall {
  readonly call: RecordedCall;
  readonly mutation: Mutation;
  readonly headers: Record<string, string>;
  readonly pieces: readonly Buffer[];
}

/** What became of a call. */
interface Outcome {
  readonly httpStatus: number;
  /** -1 when the stream ended without one. */
  readonly code: number;
  readonly message: string;
}

/** What a door needs to know. */
export interface GrpcDoorDeps {
  readonly address: string;
  readonly calls: readonly RecordedCall[];
  /** What makes `authorization`, asked again when it has become worthless. */
  readonly signIn: () => Promise<string>;
  readonly onViolation: (text: string) => void;
  readonly onSent: (mutation: Mutation, code: number) => void;
}

/** One connection with its session. */
export class GrpcDoor {
  readonly #deps: GrpcDoorDeps;
  #session: ClientHttp2Session;
  #authorization = "";
  #signingIn: Promise<void> | undefined;

  constructor(deps: GrpcDoorDeps) {
    this.#deps = deps;
    this.#session = this.#connect();
  }

  /** Sends one mutated call and judges the answer. */
  async attack(random: SeededRandom): Promise<void> {
    if (this.#authorization === "") await this.#signIn();
    const wrong = this.#wrongCall(random);
    const outcome = await this.#send(wrong);
    this.#judge(wrong, outcome);
    this.#deps.onSent(wrong.mutation, outcome.code);
    if (outcome.code === Code.UNAUTHENTICATED && wrong.mutation !== "token") this.#authorization = "";
  }

  close(): void {
    this.#session.destroy();
  }

  #connect(): ClientHttp2Session {
    const session = connect(`http://${this.#deps.address}`);
    session.on("error", () => undefined);
    return session;
  }

  #signIn(): Promise<void> {
    this.#signingIn ??= this.#deps
      .signIn()
      .then((authorization) => {
        this.#authorization = authorization;
      })
      .finally(() => {
        this.#signingIn = undefined;
      });
    return this.#signingIn;
  }

  #wrongCall(random: SeededRandom): WrongCall {
    const call = random.pick(this.#deps.calls);
    const draw = random.below(100);
    const mutation: Mutation =
      draw < 45 ? "protobuf" : draw < 68 ? "name" : draw < 80 ? "token" : draw < 92 ? "frames" : "headers";
    const headers: Record<string, string> = { authorization: this.#authorization };
    let messages = call.messages;
    const at = random.below(messages.length);
    const chosen = messages[at] ?? Buffer.alloc(0);
    if (mutation === "protobuf") messages = messages.with(at, mutatedMessage(chosen, random));
    if (mutation === "name") messages = messages.with(at, withNastyText(chosen, random));
    if (mutation === "token") headers["authorization"] = wrongToken(this.#authorization, random);
    if (mutation === "headers") spoilHeaders(headers, random);
    const pieces = mutation === "frames" ? wrongFrames(messages, headers, random) : [framed(messages)];
    return { call, mutation, headers, pieces };
  }

  async #send({ call, headers, pieces }: WrongCall): Promise<Outcome> {
    if (this.#session.destroyed || this.#session.closed) this.#session = this.#connect();
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request(
        {
          ":method": "POST",
          ":path": call.path,
          "content-type": "application/grpc",
          te: "trailers",
          ...headers,
        },
        { endStream: false },
      );
    } catch (error) {
      // What node:http2 does not send says nothing of the server.
      return { httpStatus: 0, code: Code.OK, message: String(error) };
    }
    const outcome = outcomeOf(stream);
    for (const piece of pieces) stream.write(piece);
    stream.end();
    return outcome;
  }

  #judge({ call, mutation, headers, pieces }: WrongCall, { httpStatus, code, message }: Outcome): void {
    const isHttpRefusal = mutation === "headers" && (httpStatus === 415 || httpStatus === 431);
    const isLaidDown = code === Code.INTERNAL && message === LAID_DOWN;
    const isFault = code === Code.INTERNAL || code === Code.UNKNOWN || code === Code.DATA_LOSS || code === -1;
    if (!isFault || isHttpRefusal || isLaidDown) return;
    const sent = Buffer.concat(pieces).toString("base64").slice(0, 1_000);
    const said = code === -1 ? `no status (${message})` : `status ${code} (${message})`;
    const { authorization: _token, ...others } = headers;
    this.#deps.onViolation(`${call.path} answered ${said} to ${mutation} ${JSON.stringify(others)} ${sent}`);
  }
}

function outcomeOf(stream: ClientHttp2Stream): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  let httpStatus = 0;
  let code = -1;
  let message = "the stream was closed";
  const read = (headers: Record<string, unknown>): void => {
    if (headers["grpc-status"] === undefined) return;
    code = Number(headers["grpc-status"]);
    message = decodeMessage(String(headers["grpc-message"] ?? ""));
  };
  const late = setTimeout(() => {
    message = `nothing within ${ANSWER_WITHIN_MS} ms`;
    stream.destroy();
  }, ANSWER_WITHIN_MS);
  stream.on("response", (headers) => {
    httpStatus = Number(headers[":status"]);
    read(headers);
  });
  stream.on("trailers", read);
  stream.on("error", (error: Error) => {
    if (code === -1) message = `${message}: ${error.message}`;
  });
  stream.on("close", () => {
    clearTimeout(late);
    resolve({ httpStatus, code, message });
  });
  stream.resume();
  return promise;
}

function framed(messages: readonly Uint8Array[]): Buffer {
  return Buffer.concat(messages.flatMap((message) => [head(0, message.length), message]));
}

function head(flag: number, length: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = flag;
  bytes.writeUInt32BE(length >>> 0, 1);
  return bytes;
}

/** Frames that lie, are cut, packed, unpacked, too many or too few. */
function wrongFrames(
  messages: readonly Uint8Array[],
  headers: Record<string, string>,
  random: SeededRandom,
): Buffer[] {
  const body = framed(messages);
  const first = messages[0] ?? Buffer.alloc(0);
  switch (random.below(9)) {
    case 0:
      return [head(random.between(2, 255), first.length), Buffer.from(first)];
    case 1:
      return [head(0, random.pick([2 ** 32 - 1, 8 * 2 ** 20 + 1, first.length + 1, 5])), Buffer.from(first)];
    case 2:
      return [body.subarray(0, random.below(body.length + 1))];
    case 3:
      return [body, body];
    case 4:
      return [];
    case 5:
      return [...body.subarray(0, 40)].map((byte) => Buffer.from([byte]));
    case 6: {
      headers["grpc-encoding"] = random.pick(["gzip", "gzip", "br", "identity", ""]);
      const packed = gzipSync(first);
      return [head(1, packed.length), packed];
    }
    case 7: {
      headers["grpc-encoding"] = "gzip";
      const packed = mutatedMessage(gzipSync(first), random);
      return [head(1, packed.length), packed];
    }
    default:
      return [head(1, first.length), Buffer.from(first)];
  }
}

function wrongToken(authorization: string, random: SeededRandom): string {
  const at = random.below(authorization.length + 1);
  switch (random.below(5)) {
    case 0:
      return authorization.slice(0, at);
    case 1:
      return `${authorization.slice(0, at)}${nastyHeader(random)}${authorization.slice(at)}`;
    case 2:
      return `Bearer mock-jwt.${nastyHeader(random)}`;
    case 3: {
      const claims = JSON.stringify({
        email: nastyHeader(random),
        exp: random.pick([0, -1, 1e300, "x"]),
        aud: [],
      });
      return `Bearer mock-jwt.${Buffer.from(claims).toString("base64url")}`;
    }
    default:
      return `Bearer ${nastyHeader(random)}`;
  }
}

function spoilHeaders(headers: Record<string, string>, random: SeededRandom): void {
  const name = random.pick([
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
    "content-type",
    "x-request-id",
    "x-admin-password-hash",
    "svc-retry",
    "x-nasty-bin",
    "user-agent",
  ]);
  headers[name] = random.chance(0.5)
    ? nastyHeader(random)
    : random.pick(["1n", "0S", "99999999H", "-1S", "gzip", "application/grpc+json", "=", "*"]);
}
