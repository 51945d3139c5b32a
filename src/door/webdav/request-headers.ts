// WebDAV's own request headers: Depth, Overwrite, Destination, Timeout, Lock-Token.
import { GroveError } from "#base/errors.ts";
import { requireEncoded } from "./href.ts";

/** Seconds for which a lock holds without a refresh, at most. */
export const LOCK_MAX_SECONDS = 3600;

/** How far below a resource a request goes. */
export type Depth = "0" | "1" | "infinity";

/** The Depth header; `absent` where there is none. Throws BAD_ARGUMENT for another value. */
export function readDepth(header: string | undefined, absent: Depth): Depth {
  const value = header?.trim().toLowerCase() ?? absent;
  if (value === "0" || value === "1" || value === "infinity") return value;
  throw new GroveError("BAD_ARGUMENT", 'Depth is "0", "1" or "infinity"');
}

/** The Overwrite header: true unless it is "F". Throws BAD_ARGUMENT for neither T nor F. */
export function readOverwrite(header: string | undefined): boolean {
  const value = header?.trim().toUpperCase() ?? "T";
  if (value === "T" || value === "F") return value === "T";
  throw new GroveError("BAD_ARGUMENT", 'Overwrite is "T" or "F"');
}

/** Seconds of a Timeout header, of which the first that can be read counts; at most an hour. */
export function readTimeout(header: string | undefined): number {
  for (const part of (header ?? "").split(",").slice(0, 8)) {
    const seconds = /^\s*second-(\d{1,10})\s*$/iu.exec(part)?.[1];
    if (seconds !== undefined) return Math.max(1, Math.min(Number(seconds), LOCK_MAX_SECONDS));
  }
  return LOCK_MAX_SECONDS;
}

/** The token in a Lock-Token header, which some clients send without its brackets. Throws BAD_ARGUMENT without one. */
export function readLockToken(header: string | undefined): string {
  const token = /^\s*(?:<([^<>\s]{1,200})>|([^<>\s]{1,200}))\s*$/u
    .exec(header ?? "")
    ?.slice(1)
    .find(Boolean);
  if (token === undefined) throw new GroveError("BAD_ARGUMENT", "Lock-Token names no lock");
  return token;
}

/** An address of this door, or of another. */
export interface Address {
  /** Host and port; undefined for an address without them. */
  readonly host: string | undefined;
  /** As it was written: still encoded. */
  readonly path: string;
}

/**
 * Host and path of an absolute URL or of an absolute path. The path is not normalised, so that dot segments can be refused.
 * Throws BAD_ARGUMENT for anything else.
 */
export function readAddress(value: string, header: string): Address {
  const written = value.trim();
  requireEncoded(written, header);
  const found = /^(?:https?:\/\/([^/?#\\\s@]{1,300}))?(\/[^?#\s]*)$/iu.exec(written);
  const path = found?.[2];
  if (path === undefined) throw new GroveError("BAD_ARGUMENT", `${header} is an address of this server`);
  return { host: found?.[1]?.toLowerCase(), path };
}
