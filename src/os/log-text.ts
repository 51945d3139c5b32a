// What texts and fields become in a log line: secrets are scrubbed out, and what is left is cut to length (C-13).
import { toJson64 } from "#base/json64.ts";
import type { LogFields } from "#base/log.ts";
import { isSecretField, scrub } from "./scrub.ts";

/** Characters of one text field in a log line. */
export const LOG_TEXT_MAX_LENGTH = 8_192;

/** Names that the line itself uses; a field of such a name would make a second key of it. */
const OWN_KEYS: ReadonlySet<string> = new Set(["level", "time", "event"]);

/** The fields of a line: without secrets, their texts cut, none with a name of the line itself. */
export function cleanFields(fields: LogFields): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const key = OWN_KEYS.has(name) ? `${name}_` : name;
    if (isSecretField(name) && value !== null && typeof value !== "boolean") clean[key] = "[redacted]";
    else if (typeof value === "string") clean[key] = cleanText(value);
    else clean[key] = typeof value === "bigint" ? toJson64(value) : value;
  }
  return clean;
}

/** A text of a line: scrubbed, then cut to LOG_TEXT_MAX_LENGTH, since half a token would no longer look like one. */
export function cleanText(text: string): string {
  const clean = scrub(text.slice(0, 4 * LOG_TEXT_MAX_LENGTH));
  return clean.length <= LOG_TEXT_MAX_LENGTH ? clean : `${clean.slice(0, LOG_TEXT_MAX_LENGTH)}…`;
}
