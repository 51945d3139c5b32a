// Completes the beginning of a path on the cluster from the folder that it lies in.
import { systemClock } from "#base/clock.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { isFolder, listPages } from "#client/connection/listing.ts";
import { COMPLETION_WAIT_MS, COMPLETIONS_MAX } from "#client/terminal/limits.ts";
import { terminalText } from "#client/terminal/terminal-text.ts";

/**
 * Paths that begin like the typed one, folders with a slash; at most 1,000. Tells nothing beside them, and waits no
 * longer than a user for a Tab: meanwhile no key is read, also not Ctrl-C. Rejects as listing does.
 */
export async function completePath(context: ClientContext, typed: string): Promise<string[]> {
  const { shared } = context;
  const controller = new AbortController();
  const cancel = systemClock.after(COMPLETION_WAIT_MS, () => controller.abort());
  shared.signal = controller.signal;
  shared.isQuiet = true;
  try {
    return await pathsLike(context, typed);
  } finally {
    cancel();
    shared.isQuiet = false;
  }
}

async function pathsLike(context: ClientContext, typed: string): Promise<string[]> {
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
