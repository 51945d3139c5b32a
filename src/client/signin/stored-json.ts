// The client's small JSON files: untrusted when read, replaced as a whole, readable by the owner alone.

import { isGroveError } from "#base/errors.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { OWN_FILE_MAX_BYTES } from "#client/terminal/limits.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";

/** The fields of one file, each read by its type, so that a damaged file counts as absent. */
export class StoredFields {
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    this.#fields =
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? (value as Readonly<Record<string, unknown>>)
        : {};
  }

  /** A text, undefined when there is none or it is something else. */
  text(name: string): string | undefined {
    const value = this.#own(name);
    return typeof value === "string" && value !== "" ? value : undefined;
  }

  /** A whole number that is exact, undefined when there is none. */
  integer(name: string): number | undefined {
    const value = this.#own(name);
    return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
  }

  /** True only for `true`. */
  flag(name: string): boolean {
    return this.#own(name) === true;
  }

  /** The texts of a list; other values are left out. */
  texts(name: string): string[] {
    const value = this.#own(name);
    return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
  }

  /** An object inside, undefined when there is none. */
  fields(name: string): StoredFields | undefined {
    const value = this.#own(name);
    return typeof value === "object" && value !== null ? new StoredFields(value) : undefined;
  }

  /** Names of all fields. */
  names(): string[] {
    return Object.keys(this.#fields);
  }

  #own(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }
}

/** Parses text as the fields of an object; undefined when it is no JSON. */
export function parseFields(text: string): StoredFields | undefined {
  if (text.length > OWN_FILE_MAX_BYTES) return undefined;
  try {
    return new StoredFields(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/**
 * Reads one of our files; undefined when it is missing or damaged: it will be written anew. Refuses a file
 * that others may read, since its secrets may be known to them.
 */
export async function readStored(path: string): Promise<StoredFields | undefined> {
  const stored = await readStoredOrDamaged(path);
  return stored === "damaged" ? undefined : stored;
}

/** The same for a file that is not written anew by itself: tells a damaged one from a missing one. */
export async function readStoredOrDamaged(path: string): Promise<StoredFields | "damaged" | undefined> {
  try {
    const text = await readPrivateFile(path);
    return text === undefined ? undefined : (parseFields(text) ?? "damaged");
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
    throw new ClientError("LOCAL_DENIED", error.message, { todo: "", cause: error });
  }
}

/** Replaces one of our files. Rejects with ClientError. */
export async function writeStored(path: string, fields: Readonly<Record<string, unknown>>): Promise<void> {
  try {
    await writePrivateFile(path, `${JSON.stringify({ schema: 1, ...fields }, null, 2)}\n`);
  } catch (error) {
    throw localFailure(error, path);
  }
}
