// Bare node:http before bare node:http2: hands on the bytes of another server, which a door does at the least.
import { createServer } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { serveTasks } from "#bench/tasks.ts";
import { crc32 } from "#os/crc32.ts";

const WINDOW_BYTES = 1_048_576;
const SESSION_WINDOW_BYTES = 64 * 1_048_576;

let behind: ClientHttp2Session | undefined;

const server = createServer((_request, response) => {
  const stream = behind?.request({ ":path": "/DownloadFile" });
  let sum = 0;
  stream?.on("data", (slice: Buffer) => {
    sum = crc32(slice, sum);
    if (response.write(slice)) return;
    stream.pause();
    response.once("drain", () => stream.resume());
  });
  stream?.once("end", () => response.end());
});

serveTasks(
  {
    listen: async (address) => {
      behind = connect(`http://${String(address)}`, {
        settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
      });
      behind.once("connect", () => behind?.setLocalWindowSize(SESSION_WINDOW_BYTES));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return (server.address() as AddressInfo).port;
    },
  },
  () => {
    server.close();
    server.closeAllConnections();
    behind?.destroy();
  },
);
