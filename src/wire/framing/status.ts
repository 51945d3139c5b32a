// The outcome of a call: status codes, StatusError, and their wire form.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { StatusSchema } from "./gen/google/rpc/status_pb.ts";
import { Metadata } from "./metadata.ts";

/** The seventeen status codes of gRPC. */
export const Code = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;
export type Code = (typeof Code)[keyof typeof Code];

const CODE_NAMES = Object.keys(Code);

/** The name of a code, such as NOT_FOUND. */
export const codeName = (code: Code): string => CODE_NAMES[code] ?? String(code);

/** One google.protobuf.Any of google.rpc.Status: the type of a message, and its bytes. */
export interface ErrorDetail {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** Options of StatusError besides code and message. */
export interface StatusErrorOptions {
  readonly details?: readonly ErrorDetail[];
  readonly metadata?: Metadata;
  readonly cause?: unknown;
}

/** A call that did not end in OK. Handlers throw it to choose the answer; clients throw it to report one. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly code: Code;
  /** Details, sent and received as google.rpc.Status in grpc-status-details-bin. */
  readonly details: readonly ErrorDetail[];
  /** Custom trailers that go, or came, with the status. */
  readonly metadata: Metadata;

  constructor(code: Code, message: string, options: StatusErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? [];
    this.metadata = options.metadata ?? new Metadata();
  }
}

/** The peer sent a malformed message: INTERNAL on a client; a server answers `answerCode` (B-08). */
export class MalformedMessageError extends StatusError {
  readonly #answerCode: Code;

  /** @param answerCode another than INVALID_ARGUMENT only where gRPC lays it down */
  constructor(
    message: string,
    options: Pick<StatusErrorOptions, "cause"> = {},
    answerCode: Code = Code.INVALID_ARGUMENT,
    code: Code = Code.INTERNAL,
  ) {
    super(code, message, options);
    this.#answerCode = answerCode;
  }

  /** The same as a server's answer: the request is wrong, and nothing on this side. */
  asAnswer(): MalformedMessageError {
    return new MalformedMessageError(this.message, { cause: this.cause }, this.#answerCode, this.#answerCode);
  }
}

/**
 * Percent-encodes a status message: the percent sign and everything outside printable ASCII, as UTF-8 bytes.
 */
export const encodeMessage = (message: string): string => {
  if (/^[\x20-\x24\x26-\x7e]*$/.test(message)) return message;
  let encoded = "";
  for (const byte of Buffer.from(message, "utf8")) {
    encoded +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
};

/** Decodes a status message; a percent sign without an escape stays, and invalid UTF-8 becomes U+FFFD. */
export const decodeMessage = (encoded: string): string => {
  if (!encoded.includes("%")) return encoded;
  const bytes: number[] = [];
  for (let i = 0; i < encoded.length; i++) {
    const hex = encoded.slice(i + 1, i + 3);
    if (encoded[i] === "%" && /^[0-9A-Fa-f]{2}$/.test(hex)) {
      bytes.push(Number.parseInt(hex, 16));
      i += 2;
    } else {
      bytes.push(...Buffer.from(encoded[i] as string, "utf8"));
    }
  }
  return Buffer.from(bytes).toString("utf8");
};

/** The headers of a status, as a flat list (name, value, …). */
export const statusHeaders = (error: StatusError): string[] => {
  const raw = ["grpc-status", String(error.code)];
  if (error.message !== "") raw.push("grpc-message", encodeMessage(error.message));
  if (error.details.length > 0) {
    const status = create(StatusSchema, {
      code: error.code,
      message: error.message,
      details: error.details.map(({ typeUrl, value }) => ({ typeUrl, value })),
    });
    const base64 = Buffer.from(toBinary(StatusSchema, status)).toString("base64");
    raw.push("grpc-status-details-bin", base64.replace(/=+$/, ""));
  }
  error.metadata.appendTo(raw);
  return raw;
};

const detailsOf = (base64: string | undefined): readonly ErrorDetail[] => {
  if (base64 === undefined) return [];
  try {
    const status = fromBinary(StatusSchema, Buffer.from(base64, "base64"));
    return status.details.map(({ typeUrl, value }) => ({ typeUrl, value }));
  } catch {
    // Broken details must not hide their status.
    return [];
  }
};

/** Reads a status from trailers or a trailers-only reply: undefined without one, null when it is OK. */
export const statusOf = (raw: readonly string[]): StatusError | null | undefined => {
  let code: string | undefined;
  let message = "";
  let details: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i] === "grpc-status") code = raw[i + 1];
    else if (raw[i] === "grpc-message") message = decodeMessage(raw[i + 1] as string);
    else if (raw[i] === "grpc-status-details-bin") details = raw[i + 1];
  }
  if (code === undefined) return undefined;
  if (code === "0") return null;
  const known = /^[0-9]{1,2}$/.test(code) && Number(code) <= 16;
  return new StatusError(known ? (Number(code) as Code) : Code.UNKNOWN, message, {
    details: detailsOf(details),
    metadata: Metadata.fromRaw(raw),
  });
};

/** The status for an HTTP answer without one (the mapping that all gRPC clients share). */
export const statusOfHttp = (httpStatus: number): StatusError => {
  const codes: Readonly<Record<number, Code>> = {
    400: Code.INTERNAL,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.UNIMPLEMENTED,
    429: Code.UNAVAILABLE,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.UNAVAILABLE,
  };
  return new StatusError(codes[httpStatus] ?? Code.UNKNOWN, `HTTP status ${httpStatus}`);
};
