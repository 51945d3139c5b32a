// Large files, the main job: through our gRPC into the store and back, against grpc-js without storage.

import type { Lab } from "#bench/lab.ts";
import { type FileServerPair, startFileServer } from "#bench/node.ts";
import { connectedPair, type Security } from "#bench/pair.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const FILE_BYTES = 2 ** 30;
const PATH = "/large.bin";
/** Versions of the file in memory at once: removed ones go a moment later. */
const VERSIONS_AT_ONCE = 3;
/** The other side, in the words of the table. */
export const GRPC_JS_TRANSFERS =
  "@grpc/grpc-js with its window raised, the same messages and CRC-32, nothing stored";

const row = (task: "up" | "down", security: Security, atLeast: number): RatioRow => ({
  name: `${task === "up" ? "UploadFile 1 GiB to a tmpfs, committed" : "DownloadFile 1 GiB"}, ${security}`,
  against: GRPC_JS_TRANSFERS,
  atLeast,
  rate: "MiB/s",
  async sides(lab) {
    const ours = await fileServer(lab, security);
    const theirs = await connectedPair(lab, "grpc-js", security);
    return {
      ours: () => ours.measure(task, { path: PATH, bytes: FILE_BYTES }),
      theirs: () => theirs.measure(task, FILE_BYTES),
    };
  },
});

function fileServer(lab: Lab, security: Security): Promise<FileServerPair> {
  return lab.once(`fileserver ${security}`, async () => {
    const folder = await lab.folder("memory");
    if (security === "plain") await lab.warm(folder, VERSIONS_AT_ONCE * FILE_BYTES);
    const pair = await startFileServer(lab, folder, security);
    await pair.measure("up", { path: PATH, bytes: FILE_BYTES });
    return pair;
  });
}

export const transfer: Group = {
  name: "transfer",
  rows: () => [
    row("up", "plain", 1.5),
    row("down", "plain", 2.5),
    row("up", "TLS", 1.3),
    row("down", "TLS", 2.0),
  ],
};
