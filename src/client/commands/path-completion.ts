// Completes the beginning of a path on the cluster from the folder that it lies in.
import type { ClientContext } from "#client/connection/client-context.ts";
import { isFolder, listPages } from "#client/connection/listing.ts";
import { COMPLETIONS_MAX } from "#client/terminal/limits.ts";
import { terminalText } from "#client/terminal/terminal-text.ts";

/** Paths that begin like the typed one, folders with a slash; at most 1,000. Rejects as listing does. */
export async function completePath(context: ClientContext, typed: string): Promise<string[]> {
  const at = Math.max(typed.lastIndexOf("/"), typed.includes("@") ? typed.indexOf(":") : -1);
  const folder = typed.slice(0, at + 1);
  const beginning = typed.slice(at + 1).normalize("NFC");
  const path = await context.resolve(folder === "" ? "." : folder);
  const found: string[] = [];
  for await (const page of listPages(await context.cluster(), path)) {
    for (const attr of page) {
      // Names that need escapes in the output cannot be typed either.
      if (!attr.name.startsWith(beginning) || terminalText(attr.name) !== attr.name) continue;
      found.push(`${folder}${attr.name}${isFolder(attr) ? "/" : ""}`);
      if (found.length === COMPLETIONS_MAX) return found;
    }
    // Sorted by name: after the last match no other name matches.
    const last = page.at(-1);
    if (last !== undefined && last.name > beginning && !last.name.startsWith(beginning)) break;
  }
  return found;
}
