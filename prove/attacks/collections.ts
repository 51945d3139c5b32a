// Loaded into a server by --import to count HTTP/2 sessions that were garbage-collected before their streams.
//
// On SIGPWR it begins to watch. On the next SIGPWR it collects garbage. It then prints how many closed
// sessions' native parts went together with that of one of their streams, or before it. Such a session ends
// the process if it still holds memory of the session, which is up to chance. Each thread watches its own.
import { subscribe } from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import type { ServerHttp2Stream } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

/** Streams watched at a time; further ones are not watched. */
const STREAMS_MAX = 20_000;
/**
 * Full collections after one signal: a session is freed in the second one after its end. More follow until
 * one was.
 */
const COLLECTIONS = 4;
const COLLECTIONS_MAX = 40;

interface Watched {
  readonly session: WeakRef<object>;
  readonly streams: Set<WeakRef<object>>;
}

const watched = new Map<number, Watched>();
const numbers = new WeakMap<object, number>();
let [count, made, isWatching] = [0, 0, false];

/** Node's native object behind it. */
function handleOf(owner: object | undefined): object | undefined {
  const symbol = Object.getOwnPropertySymbols(owner ?? {}).find(
    ({ description }) => description === "kHandle",
  );
  const handle: unknown = symbol === undefined ? undefined : Reflect.get(owner ?? {}, symbol);
  return typeof handle === "object" && handle !== null ? handle : undefined;
}

function watch(stream: ServerHttp2Stream): void {
  if (!isWatching) return;
  const [own, session] = [handleOf(stream), handleOf(stream.session)];
  if (own === undefined || session === undefined || count >= STREAMS_MAX) return;
  count++;
  const number = numbers.get(session) ?? made++;
  numbers.set(session, number);
  const entry = watched.get(number) ?? { session: new WeakRef(session), streams: new Set() };
  watched.set(number, entry);
  entry.streams.add(new WeakRef(own));
}

async function collect(gc: () => void): Promise<void> {
  let wrong = 0;
  let gone = 0;
  for (let round = 0; round < (gone > 0 ? COLLECTIONS : COLLECTIONS_MAX); round++) {
    // Objects that a turn has looked at live until its end.
    await turn();
    gc();
    await turn();
    for (const [number, { session, streams }] of watched) {
      const before = streams.size;
      if (session.deref() === undefined) {
        watched.delete(number);
        count -= before;
        gone++;
        if (before > 0) wrong++;
        continue;
      }
      for (const stream of streams) if (stream.deref() === undefined) streams.delete(stream);
      count -= before - streams.size;
    }
  }
  watched.clear();
  count = 0;
  if (gone > 0) writeSync(2, `collected ${gone} sessions, ${wrong} not after their streams\n`);
}

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;
subscribe("http2.server.stream.created", (message) =>
  watch((message as { readonly stream: ServerHttp2Stream }).stream),
);
const turnOver = (): void => {
  isWatching = !isWatching;
  if (!isWatching) void collect(gc);
};
// Signals reach the main thread alone; event loops of their own hear of them here.
const signals = new BroadcastChannel("grove.collections");
signals.addEventListener("message", turnOver);
(signals as unknown as { unref(): void }).unref();
if (isMainThread) {
  process.on("SIGPWR", () => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no origin
    signals.postMessage(null);
    turnOver();
  });
}
