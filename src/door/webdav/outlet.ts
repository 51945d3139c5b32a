// The way of a body's parts to the client: those that came together leave in one write, and nothing joins them.
import { GroveError } from "#base/errors.ts";

/** An answer that can gather writes. */
export interface GatheringOutlet {
  readonly writableLength: number;
  cork(): void;
  uncork(): void;
  write(part: Uint8Array): boolean;
}

/** An answer that takes the parts of a body. */
export interface PartsOutlet {
  readonly destroyed: boolean;
  write(part: string | Uint8Array): boolean;
  /** False where `drain` will tell that there is room again. */
  writeAll(parts: readonly Uint8Array[]): boolean;
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
}

/** Writes parts as one; true where the connection takes more at once. */
export function writeGathered(outlet: GatheringOutlet, parts: readonly Uint8Array[]): boolean {
  let hasRoom = true;
  outlet.cork();
  for (const part of parts) hasRoom = outlet.write(part);
  outlet.uncork();
  // While they are gathered they are many bytes; the kernel may have taken all of them at once.
  return hasRoom || outlet.writableLength === 0;
}

/** Sends parts; a promise resolves once the connection takes more. Throws when it is gone. */
export function sendParts(outlet: PartsOutlet, parts: readonly Uint8Array[]): true | Promise<void> {
  requireOpen(outlet);
  return outlet.writeAll(parts) ? true : roomIn(outlet);
}

/** Sends a part of a body, and resolves once the connection takes more. Rejects when it is gone. */
export async function sendPart(outlet: PartsOutlet, part: string | Uint8Array): Promise<void> {
  requireOpen(outlet);
  if (!outlet.write(part)) await roomIn(outlet);
}

function requireOpen({ destroyed }: PartsOutlet): void {
  if (destroyed) throw new GroveError("SESSION_MISSING", "the connection is gone");
}

/** Resolves once the connection takes more, and when it has ended. */
function roomIn(outlet: PartsOutlet): Promise<void> {
  // Not once() of node:events: the signal that would end the other wait makes an error with a stack each time.
  return new Promise<void>((resolve) => {
    const goOn = (): void => {
      outlet.off("drain", goOn);
      outlet.off("close", goOn);
      resolve();
    };
    outlet.once("drain", goOn);
    outlet.once("close", goOn);
  });
}
