// A connection that sends many requests to /metrics at once is ended before they hold anybody up.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { serveStatus } from "./status-server.ts";
import { REQUESTS_UNANSWERED } from "./unanswered-requests.ts";

test("of requests that come at once few are looked at, and their connection ends", async (t) => {
  let came = 0;
  const server = await serveStatus(
    {
      answer: async (_request, response) => {
        came++;
        response.end("{}");
      },
      failed: () => undefined,
      clock: systemClock,
      otherwise: "",
    },
    { host: "127.0.0.1", port: 0 },
  );
  t.after(() => server.close());
  /** Resolves with the connection's end, by a reset too. */
  const send = (requests: number, more = ""): Promise<void> => {
    const text = `GET /metrics HTTP/1.1\r\nHost: a\r\n${more}\r\n`.repeat(requests);
    const socket = connect(server.address.port, "127.0.0.1", () => socket.write(text));
    socket.on("error", () => undefined).resume();
    return new Promise((resolve) => socket.once("close", () => resolve()));
  };
  await send(1_000);
  assert.ok(came <= REQUESTS_UNANSWERED, String(came));
  came = 0;
  await send(1, "Connection: close\r\n");
  assert.equal(came, 1);
});
