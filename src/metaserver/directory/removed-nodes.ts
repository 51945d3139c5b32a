// Keys of nodes that an operator has removed, refused until the node has joined anew, as plans (D19, D20).
import { GroveError } from "#base/errors.ts";
import { dropSetting, putSetting, setting } from "#metaserver/sql/settings.ts";
import { type Plan } from "#metaserver/sql/sql-plan.ts";
import type { Speaker } from "./node-caller.ts";

/** A setting per removed id: a new table would shut out MetaServers and consoles of the version before. */
const PREFIX = "removed_node:";
const REMOVED_KEYS_MAX = 16;

/** Records the keys of a removed node; one without any has proven nothing, so nothing bars it. */
export function* noteRemoved(fsId: string, keys: readonly (string | null)[]): Plan<void> {
  const known = yield* removedKeys(fsId);
  // The newest first: an id that comes and goes has a few.
  const all = new Set([...keys.filter((key) => key !== null), ...known]);
  yield* putKeys(fsId, [...all].slice(0, REMOVED_KEYS_MAX));
}

/** Throws CLIENT_CERT_REQUIRED for a removed node that has not joined anew since. */
export function* requireNotRemoved(fsId: string, speaker: Speaker): Plan<void> {
  if (speaker.kind === "mock" || !(yield* removedKeys(fsId)).includes(speaker.keyFingerprint)) return;
  throw new GroveError(
    "CLIENT_CERT_REQUIRED",
    `${fsId} was taken out of this cluster, and its certificate lets it in no more: join it anew (grove node token -id ${fsId}, grove node join -again)`,
    { metadata: { certificate: "is of a node that was removed" } },
  );
}

/** Readmits a node that has joined anew with this key; the other keys of its id stay refused. */
export function* readmitNode(fsId: string, keyFingerprint: string): Plan<void> {
  const known = yield* removedKeys(fsId);
  if (known.includes(keyFingerprint))
    yield* putKeys(
      fsId,
      known.filter((key) => key !== keyFingerprint),
    );
}

function* removedKeys(fsId: string): Plan<string[]> {
  return (yield* setting(PREFIX + fsId))?.split(" ") ?? [];
}

function* putKeys(fsId: string, keys: readonly string[]): Plan<void> {
  if (keys.length === 0) {
    yield* dropSetting(PREFIX + fsId);
    return;
  }
  yield* putSetting(PREFIX + fsId, keys.join(" "));
}
