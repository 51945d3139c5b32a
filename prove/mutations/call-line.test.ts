// Tests that a call line reports how a server of node:http2 ended each call.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { hpack } from "#testing/raw-http2.ts";
import { CallLine } from "./call-line.ts";

const HEADERS = hpack([
  [":method", "POST"],
  [":scheme", "http"],
  [":authority", "test"],
  [":path", "/"],
]);
const ANSWER_WITHIN_MS = 60_000;

async function lineTo(
  context: TestContext,
  answer: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<CallLine> {
  const server = createServer().on("stream", answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const line = await CallLine.connect(
    `127.0.0.1:${(server.address() as AddressInfo).port}`,
    ANSWER_WITHIN_MS,
  );
  context.after(() => {
    line.close();
    server.close();
  });
  return line;
}

test("every status, and every printable message, is read as the server meant it", async (context) => {
  const printable = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index))
    .filter((character) => character !== "\\" && character !== "%")
    .join("");
  const statuses = Array.from({ length: 17 }, (_, code) => code);
  let next = 0;
  const line = await lineTo(context, (stream) => {
    const code = next++;
    const end = { "grpc-status": String(code), "grpc-message": `${printable} ${code}`, "x-other": "value" };
    if (code % 2 === 0) {
      stream.respond({ ":status": 200, "content-type": "application/grpc", ...end }, { endStream: true });
      return;
    }
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(end));
    stream.end("some bytes");
  });
  for (const code of statuses) {
    const outcome = await line.call(HEADERS, [Buffer.from("x")]);
    assert.deepEqual([outcome.httpStatus, outcome.code], [200, code]);
    assert.equal(outcome.message(), `${printable} ${code}`);
  }
});

test("an answer of HTTP alone, a reset and a lost connection are no status", async (context) => {
  const statuses = [204, 415, 421, 431, 500, 503];
  const left = [...statuses];
  const line = await lineTo(context, (stream) => {
    const status = left.shift();
    if (status === undefined) stream.close(8);
    else stream.respond({ ":status": status }, { endStream: true });
  });
  for (const httpStatus of statuses) {
    const outcome = await line.call(HEADERS, []);
    assert.deepEqual([outcome.httpStatus, outcome.code], [httpStatus, -1]);
  }
  const reset = await line.call(HEADERS, []);
  assert.deepEqual([reset.httpStatus, reset.code], [0, -1]);
  assert.equal(reset.message(), "the stream was reset with 8");
  line.close();
  assert.equal(line.isOver, true);
  assert.match((await line.call(HEADERS, [])).message(), /closed/);
});

test("pieces of any size arrive whole and in order, many calls at a time", async (context) => {
  const line = await lineTo(context, (stream) => {
    let bytes = 0;
    stream.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    stream.on("end", () =>
      stream.respond({ ":status": 200, "grpc-message": `${bytes}` }, { endStream: true }),
    );
  });
  const sizes = [0, 1, 16_383, 16_384, 16_385, 40_000];
  const outcomes = await Promise.all(
    sizes.map((size) => line.call(HEADERS, [Buffer.alloc(size), Buffer.alloc(0), Buffer.alloc(3)])),
  );
  assert.deepEqual(
    outcomes.map(({ message }) => Number(message())),
    sizes.map((size) => size + 3),
  );
});
