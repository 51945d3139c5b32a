// A loop while the main thread is held up: it does not gather sockets without end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { RawHttp2 } from "#testing/raw-http2.ts";
import { LoopGuest } from "./loop-guest.ts";
import type { FromLoop } from "./loop-messages.ts";

const MOST = 4;
const MORE = 6;

test("connections wait for their admission up to the number that could be admitted; others are closed", async (t) => {
  const sent: FromLoop[] = [];
  const guest = new LoopGuest({
    port: { postMessage: (batch) => sent.push(...(batch as FromLoop[])) },
    start: {
      loops: 2,
      limits: { unprovenConnections: MOST },
      tls: undefined,
      requestsClientCertificate: false,
    },
    onSet: () => undefined,
  });
  const { port } = await guest.server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => guest.server.close());
  const raws: RawHttp2[] = [];
  t.after(() => {
    for (const raw of raws) raw.close();
  });
  for (let count = 0; count < MOST + MORE; count++) raws.push(await RawHttp2.connect(port, false));
  const closed = () => raws.filter((raw) => raw.isClosed).length;
  while (closed() < MORE) await delay(5);
  const opens = () => sent.flatMap((one) => (typeof one === "object" && one.op === "open" ? [one] : []));
  while (opens().length < MOST) await delay(5);
  // Once the main thread answers again, there is room, and it hears how many had none.
  for (const { connection } of opens()) guest.take([{ op: "opened", connection, isTaken: false }]);
  while (closed() < MOST + MORE) await delay(5);
  raws.push(await RawHttp2.connect(port, false));
  while (opens().length < MOST + 1) await delay(5);
  assert.deepEqual(
    opens().map(({ unasked }) => unasked),
    [0, 0, 0, 0, MORE],
  );
});
