// Reads state files with a schema number, and the previous generation where one is kept (D18, A-10).
import { readFile } from "node:fs/promises";
import { GroveError } from "#base/errors.ts";
import { previousGeneration, removeLeftovers } from "./atomic-file.ts";

/** A check of the content; zod's schemas fit it. */
interface Shape<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false };
}

/**
 * Refuses files and databases of a newer Grove with BAD_ARGUMENT, since they must not be written over.
 * Ignores schemas that are no number. `wayBack` is what to do, where more is known than the usual.
 */
export function requireKnownSchema(what: string, schema: unknown, known = 1, wayBack = ""): void {
  if (typeof schema !== "number" || schema <= known) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${what} has schema ${schema} and was written by a newer Grove; this one knows schemas up to ${known}: ` +
      (wayBack === "" ? "start the newer Grove, or restore a copy from before the upgrade" : wayBack),
  );
}

/** A shape from a function that throws for wrong content. */
export function shapeOf<T>(checked: (value: unknown) => T): Shape<T> {
  return {
    safeParse: (value) => {
      try {
        return { success: true, data: checked(value) };
      } catch {
        return { success: false };
      }
    },
  };
}

/**
 * Reads a file of schema 1: its content, "missing", or "broken" where the content does not fit `shape`.
 * Throws BAD_ARGUMENT for a newer schema, and the system's error for an unreadable file.
 */
export async function readStateFile<T extends object>(
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
  requireKnownSchema(path, (value as { schema?: unknown } | null)?.schema);
  const parsed = shape.safeParse(value);
  return parsed.success ? parsed.data : "broken";
}

/** The result of reading a file and its previous generation. */
export interface Generations<T> {
  /** The newest sound content; undefined when none is sound. */
  readonly content: T | undefined;
  /** State of the file itself. */
  readonly current: "sound" | "missing" | "broken";
  /** True when generations exist and none is sound. */
  readonly isLost: boolean;
}

/** Reads a file, or the previous generation of a missing or broken one. Removes leftovers of writes. */
export async function readGenerations<T extends object>(
  path: string,
  read: (path: string) => Promise<T | "missing" | "broken">,
): Promise<Generations<T>> {
  await removeLeftovers(path);
  const current = await read(path);
  if (typeof current !== "string") return { content: current, current: "sound", isLost: false };
  const previous = await read(previousGeneration(path));
  if (typeof previous !== "string") return { content: previous, current, isLost: false };
  return { content: undefined, current, isLost: current === "broken" || previous === "broken" };
}
