// Memory of a FileServer with many running transfers and many clients that have stopped reading.
import { startFileServer } from "#bench/node.ts";
import { peakMemoryMb } from "#bench/processor-time.ts";
import { amount } from "#bench/report.ts";
import type { Group } from "#bench/row.ts";

const STREAMS = 64;
const UPLOAD_BYTES = 32_000_000;
const STUCK_FILE_BYTES = 256_000_000;

export const memory: Group = {
  name: "memory",
  rows: () => [
    {
      name: "memory of the FileServer, 64 uploads and 64 stuck downloads at once",
      unit: "MB",
      below: 350,
      async measure(lab) {
        const folder = await lab.folder("memory");
        const { server, client, measure } = await startFileServer(lab, folder, "plain");
        await client.run("up", { path: "/large", bytes: STUCK_FILE_BYTES });
        await client.run("makeFolder", "/uploads");
        await client.run("stickDownloads", { path: "/large", count: STREAMS });
        const rate = await measure("uploadMany", { folder: "/uploads", count: STREAMS, bytes: UPLOAD_BYTES });
        const detail = `largest resident size; the uploads ran at ${amount(rate)} MiB/s`;
        return { value: peakMemoryMb(server.pid), detail };
      },
    },
  ],
};
