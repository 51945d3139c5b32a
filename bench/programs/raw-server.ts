// A server on bare node:http2, the ceiling for the gRPC room: counts uploads, sends downloads, echoes.
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { serverCertificate } from "#bench/certificates.ts";
import { count, pump } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";

const WINDOW_BYTES = 16 * 1_048_576;
const settings = { initialWindowSize: WINDOW_BYTES, maxConcurrentStreams: 1_000 };
const certificate = serverCertificate();
const server: Http2Server =
  certificate === undefined ? createServer({ settings }) : createSecureServer({ settings, ...certificate });

server.on("session", (session) => session.setLocalWindowSize(WINDOW_BYTES));
server.on("stream", (stream: ServerHttp2Stream, headers) => {
  if (headers[":path"] === "/up") void answerUp(stream);
  else if (headers[":path"] === "/down") void answerDown(stream, Number(headers["x-bytes"]));
  else answerUnary(stream);
});

async function answerUp(stream: ServerHttp2Stream): Promise<void> {
  const bytes = await count(stream);
  stream.respond({ ":status": 200 });
  stream.end(String(bytes));
}

async function answerDown(stream: ServerHttp2Stream, bytes: number): Promise<void> {
  stream.respond({ ":status": 200 });
  await pump(stream, bytes);
}

function answerUnary(stream: ServerHttp2Stream): void {
  let body: Buffer | undefined;
  stream.on("data", (slice: Buffer) => {
    body = body === undefined ? slice : Buffer.concat([body, slice]);
  });
  stream.on("end", () => {
    stream.respond({ ":status": 200 });
    stream.end(body);
  });
}

serveTasks(
  {
    listen: () =>
      new Promise<number>((resolve) =>
        server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)),
      ),
  },
  () => {
    server.close();
  },
);
