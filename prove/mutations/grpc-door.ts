// Sends mutated gRPC calls on one connection, many at a time, and judges the answers.
import { gzipSync } from "node:zlib";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { hpack } from "#testing/raw-http2.ts";
import { Code } from "#wire/framing/status.ts";
import { CallLine, type Outcome } from "./call-line.ts";
import { nastyHeader } from "./nasty-values.ts";
import type { RecordedCall } from "./recorded-calls.ts";
import { mutatedMessage, withNastyText } from "./wire-mutations.ts";

/** Most time for any answer. */
export const ANSWER_WITHIN_MS = 30_000;
/** The one malformed message for which gRPC itself asks for INTERNAL. */
const LAID_DOWN = "compressed message without grpc-encoding";

/** Kinds of mutations. */
export type Mutation = "protobuf" | "name" | "token" | "frames" | "headers";

/** A call as it is sent. */
interface WrongCall {
  readonly call: RecordedCall;
  readonly mutation: Mutation;
  readonly headers: Record<string, string>;
  readonly pieces: readonly Buffer[];
}

/** Settings of a gRPC door. */
export interface GrpcDoorDeps {
  readonly address: string;
  readonly calls: readonly RecordedCall[];
  /** Makes the `authorization` header, and a new one when the last has become invalid. */
  readonly signIn: () => Promise<string>;
  readonly onViolation: (text: string) => void;
  readonly onSent: (mutation: Mutation, code: number) => void;
}

const PSEUDO: readonly (readonly [string, string])[] = [
  [":method", "POST"],
  [":scheme", "http"],
  [":authority", "rig"],
];
const CONTENT_TYPE = hpack([["content-type", "application/grpc"]]);

const packedMessages = new WeakMap<Uint8Array, Buffer>();

/** One connection with its session. */
export class GrpcDoor {
  readonly #deps: GrpcDoorDeps;
  #line: Promise<CallLine>;
  /** Header blocks that all calls of a method, and all with an authorization, share. */
  readonly #blocks = new Map<string, Buffer>();
  #authorization = "";
  #signingIn: Promise<void> | undefined;

  constructor(deps: GrpcDoorDeps) {
    this.#deps = deps;
    this.#line = this.#connect();
  }

  /** Sends one mutated call and judges the answer. */
  async attack(random: SeededRandom): Promise<void> {
    if (this.#authorization === "") await this.#signIn();
    const wrong = this.#wrongCall(random);
    const outcome = await this.#send(wrong);
    this.#judge(wrong, outcome);
    this.#deps.onSent(wrong.mutation, outcome.code);
    const isOver = outcome.code === Code.UNAUTHENTICATED && wrong.call.needsSession;
    if (isOver && wrong.mutation !== "token") this.#authorization = "";
  }

  close(): void {
    this.#line.then(
      (line) => line.close(),
      () => undefined,
    );
  }

  #connect(): Promise<CallLine> {
    const line = CallLine.connect(this.#deps.address, ANSWER_WITHIN_MS);
    // The caller handles the error.
    line.catch(() => undefined);
    return line;
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
    let opened = this.#line;
    const before = await opened.catch(() => undefined);
    if (before === undefined || before.isOver) {
      // The first call that sees the end opens the next line.
      if (this.#line === opened) this.#line = this.#connect();
      opened = this.#line;
    }
    try {
      return await (await opened).call(this.#headerBlock(call.path, headers), pieces);
    } catch (error) {
      return { httpStatus: 0, code: -1, message: () => String(error) };
    }
  }

  #headerBlock(path: string, headers: Readonly<Record<string, string>>): Buffer {
    const blocks = [this.#block(path, () => [...PSEUDO, [":path", path], ["te", "trailers"]])];
    if (headers["content-type"] === undefined) blocks.push(CONTENT_TYPE);
    for (const [name, value] of Object.entries(headers)) {
      const isUsual = value === this.#authorization;
      blocks.push(isUsual ? this.#block(value, () => [[name, value]]) : hpack([[name, value]]));
    }
    return Buffer.concat(blocks);
  }

  #block(key: string, headers: () => readonly (readonly [string, string])[]): Buffer {
    let block = this.#blocks.get(key);
    if (block === undefined) {
      block = hpack(headers());
      this.#blocks.set(key, block);
    }
    return block;
  }

  #judge({ call, mutation, headers, pieces }: WrongCall, { httpStatus, code, message }: Outcome): void {
    const isHttpRefusal = mutation === "headers" && (httpStatus === 415 || httpStatus === 431);
    const isLaidDown = code === Code.INTERNAL && message() === LAID_DOWN;
    const isFault = code === Code.INTERNAL || code === Code.UNKNOWN || code === Code.DATA_LOSS || code === -1;
    if (!isFault || isHttpRefusal || isLaidDown) return;
    const sent = Buffer.concat(pieces).toString("base64").slice(0, 1_000);
    const said = code === -1 ? `no status (${message()})` : `status ${code} (${message()})`;
    const { authorization: _token, ...others } = headers;
    this.#deps.onViolation(`${call.path} answered ${said} to ${mutation} ${JSON.stringify(others)} ${sent}`);
  }
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

/** Packs a recorded message, once: packing costs more than a whole call. */
function packedOf(message: Uint8Array): Buffer {
  let packed = packedMessages.get(message);
  if (packed === undefined) {
    packed = gzipSync(message);
    packedMessages.set(message, packed);
  }
  return packed;
}

/** Returns frames that are cut, packed, unpacked, too many, too few or wrongly labelled. */
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
      const packed = packedOf(first);
      return [head(1, packed.length), packed];
    }
    case 7: {
      headers["grpc-encoding"] = "gzip";
      const packed = mutatedMessage(packedOf(first), random);
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
