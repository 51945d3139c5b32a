// Reads a file that is replaced as a whole and carries the number of its schema (decision D18, failure A-10).
import { readFile } from "node:fs/promises";
import { GroveError } from "#base/errors.ts";

/** What is checked of the content; zod's schemas are such. */
interface Shape<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false };
}

/**
 * Reads a file of schema 1: its content, "missing", or "broken" where it is not what `shape` describes. Throws CORRUPT for a newer schema,
 * which must not be written over, and the system's error for a file that cannot be read.
 */
export async function readSchemaFile<T extends object>(
  path: string,
  shape: Shape<T>,
  parse: (text: string) => unknown = JSON.parse,
): Promise<T | "missing" | "broken"> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "missing";
    throw error;
  }
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    return "broken";
  }
  const schema = (value as { schema?: unknown } | null)?.schema;
  if (typeof schema === "number" && schema > 1) {
    throw new GroveError("CORRUPT", `${path} was written by a newer version of Grove`);
  }
  const parsed = shape.safeParse(value);
  return parsed.success ? parsed.data : "broken";
}
