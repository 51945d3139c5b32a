// Reads and checks the request headers of a call.
import { Code, StatusError } from "./status.ts";

/** Headers that the server needs. */
export interface RequestHeaders {
  /** All headers in raw form: name, value, name, value, … */
  readonly raw: readonly string[];
  readonly timeoutMs: number | undefined;
  /** `identity` or `gzip`. */
  readonly encoding: string;
  readonly acceptsGzip: boolean;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};
/** The longest delay of a timer; longer deadlines are cut to it. */
export const TIMER_MAX_MS = 2_147_483_647;

/**
 * Reads a grpc-timeout such as `500m`: milliseconds, at least 1 unless it is zero; undefined when malformed.
 */
export const parseTimeout = (text: string): number | undefined => {
  const match = /^([0-9]{1,8})([HMSmun])$/.exec(text);
  if (match === null) return undefined;
  const ms = Number(match[1]) * (UNIT_MS[match[2] as string] as number);
  return Math.min(Math.ceil(ms), TIMER_MAX_MS);
};

/** Writes a grpc-timeout: whole milliseconds up to eight digits, then seconds. */
export const formatTimeout = (timeoutMs: number): string => {
  const ms = Math.max(0, Math.ceil(timeoutMs));
  if (ms <= 99_999_999) return `${ms}m`;
  return `${Math.min(Math.ceil(ms / 1_000), 99_999_999)}S`;
};

/** True for application/grpc and application/grpc+proto, with or without parameters. */
export const isGrpcContentType = (value: string | undefined): boolean =>
  value === "application/grpc" || /^application\/grpc(\+proto)?\s*(;.*)?$/i.test(value ?? "");

/** Reads deadline and encodings. Throws StatusError for a malformed deadline or an unsupported encoding. */
export const readRequestHeaders = (raw: readonly string[]): RequestHeaders => {
  let timeoutMs: number | undefined;
  let encoding = "identity";
  let acceptsGzip = false;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string;
    if (!name.startsWith("grpc-")) continue;
    const value = raw[i + 1] as string;
    if (name === "grpc-timeout") {
      timeoutMs = parseTimeout(value);
      if (timeoutMs === undefined) throw new StatusError(Code.INVALID_ARGUMENT, "malformed grpc-timeout");
    } else if (name === "grpc-encoding") {
      encoding = value;
    } else if (name === "grpc-accept-encoding") {
      acceptsGzip = value.split(",").some((one) => one.trim() === "gzip");
    }
  }
  if (encoding !== "identity" && encoding !== "gzip") {
    throw new StatusError(Code.UNIMPLEMENTED, `encoding ${encoding.slice(0, 32)} is not supported`);
  }
  return { raw, timeoutMs, encoding, acceptsGzip };
};
