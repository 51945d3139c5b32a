// Texts and fields of a log line: secrets scrubbed out, the rest cut to length (C-13).
import { toJson64 } from "#base/json64.ts";
import type { LogFields } from "#base/log.ts";
import { isSecretField, redactSecrets } from "./redact.ts";

/** Characters of one text field in a log line. */
export const LOG_TEXT_MAX_LENGTH = 8_192;

/** Keys of the line itself; a field with such a name would repeat the key. */
const OWN_KEYS: ReadonlySet<string> = new Set(["level", "time", "event", "request_id"]);

/** The fields of a line: without secrets, texts cut, and no key of the line itself or of its logger. */
export function cleanFields(fields: LogFields, ofLogger: object = {}): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const key = OWN_KEYS.has(name) || Object.hasOwn(ofLogger, name) ? `${name}_` : name;
    if (isSecretField(name) && value !== null && typeof value !== "boolean") clean[key] = "[redacted]";
    else if (typeof value === "string") clean[key] = cleanText(value);
    else clean[key] = typeof value === "bigint" ? toJson64(value) : value;
  }
  return clean;
}

/** A text of a line: scrubbed first, then cut to LOG_TEXT_MAX_LENGTH, since half a token looks like none. */
export function cleanText(text: string): string {
  const clean = redactSecrets(text.slice(0, 4 * LOG_TEXT_MAX_LENGTH));
  return clean.length <= LOG_TEXT_MAX_LENGTH ? clean : `${clean.slice(0, LOG_TEXT_MAX_LENGTH)}…`;
}
