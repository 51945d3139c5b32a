// A client on bare node:http2, the other end of raw-server.ts.
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { trustedAuthority } from "#bench/certificates.ts";
import { callsPerSecond, count, mibPerSecond, pump } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";

const WINDOW_BYTES = 16 * 1_048_576;
let session: ClientHttp2Session | undefined;

serveTasks(
  {
    connect: async (port) => {
      const ca = trustedAuthority();
      const options = { settings: { initialWindowSize: WINDOW_BYTES } };
      const scheme = ca === undefined ? "http" : "https";
      session = connect(
        `${scheme}://127.0.0.1:${String(port)}`,
        ca === undefined ? options : { ...options, ca },
      );
      await new Promise((resolve) => session?.once("connect", resolve));
      session.setLocalWindowSize(WINDOW_BYTES);
      return null;
    },
    up: async (bytes) => {
      const start = performance.now();
      const stream = request("/up");
      const answered = bodyOf(stream);
      await pump(stream, Number(bytes));
      if ((await answered) !== String(bytes)) throw new Error("the server counted other bytes");
      return mibPerSecond(Number(bytes), start);
    },
    down: async (bytes) => {
      const start = performance.now();
      const stream = request("/down", { "x-bytes": String(bytes) });
      stream.end();
      if ((await count(stream)) !== bytes) throw new Error("other bytes came than were asked for");
      return mibPerSecond(bytes, start);
    },
    unary: (input) => {
      const { calls, inFlight, bytes } = input as { calls: number; inFlight: number; bytes: number };
      const body = Buffer.alloc(bytes, 0x61);
      return callsPerSecond(calls, inFlight, async () => {
        const stream = request("/unary");
        stream.end(body);
        if ((await count(stream)) !== bytes) throw new Error("a reply of another length came");
      });
    },
  },
  () => session?.close(),
);

function request(path: string, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
  if (session === undefined) throw new Error("not connected");
  return session.request({ ":method": "POST", ":path": path, ...headers });
}

async function bodyOf(stream: ClientHttp2Stream): Promise<string> {
  let body = "";
  for await (const slice of stream) body += String(slice);
  return body;
}
