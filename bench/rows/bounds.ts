// What bare node:http2 and an empty call reach against the peers of other rows: the bounds of those rows here.
import { BARE, bareFiles } from "#bench/bare-files.ts";
import type { Lab } from "#bench/lab.ts";
import { connectedPair, type Security } from "#bench/pair.ts";
import { mibPerSecond } from "#bench/pump.ts";
import type { Group, RatioRow } from "#bench/row.ts";
import { SFTP, sftpTransfers } from "./encrypted.ts";
import { GRPC_JS_CREATES } from "./files.ts";
import { GRPC_JS_TRANSFERS } from "./transfer.ts";

const FILE_BYTES = 2 ** 30;
const SMALL_FILE_BYTES = 4_096;
const IN_FLIGHT = 64;
const FILES = 6_000;

/** The rate of bare node:http2, both ends with checksums. A bound is told and has no bar. */
async function bareRate(lab: Lab, task: "up" | "down", security: Security): Promise<() => Promise<number>> {
  const { server, client } = await bareFiles(lab, security);
  const file = { path: "", bytes: FILE_BYTES, checks: true };
  if (task === "down") {
    await server.run("empty");
    await client.run("up", file);
  }
  return async () => {
    if (task === "up") await server.run("empty");
    const start = performance.now();
    await client.run(task, file);
    return mibPerSecond(FILE_BYTES, start);
  };
}

const transferRow = (task: "up" | "down", security: Security): RatioRow => ({
  name: `the bound of ${task === "up" ? "UploadFile" : "DownloadFile"}, ${security}: ${BARE}`,
  against: GRPC_JS_TRANSFERS,
  atLeast: 0,
  rate: "MiB/s",
  async sides(lab) {
    const theirs = await connectedPair(lab, "grpc-js", security);
    return {
      ours: await bareRate(lab, task, security),
      theirs: () => theirs.measure(task, FILE_BYTES),
    };
  },
});

const encryptedRow = (task: "up" | "down"): RatioRow => ({
  name: `the bound of an encrypted ${task}load: ${BARE}, between two processes that run already`,
  against: SFTP[task],
  atLeast: 0,
  rate: "MiB/s",
  async sides(lab) {
    return { ours: await bareRate(lab, task, "TLS"), theirs: (await sftpTransfers(lab))[task] };
  },
});

const createRow = (security: Security): RatioRow => ({
  name: `the bound of 4 KiB files created, ${security}: calls of 4 KiB to the gRPC room, which keeps nothing`,
  against: GRPC_JS_CREATES,
  atLeast: 0,
  rate: "files/s",
  async sides(lab) {
    const room = await connectedPair(lab, "room", security);
    const theirs = await connectedPair(lab, "grpc-js", security);
    const folder = await lab.folder("disk");
    let round = 0;
    return {
      ours: () =>
        room.measure("unary", { calls: FILES, inFlight: IN_FLIGHT, payloadBytes: SMALL_FILE_BYTES }),
      async theirs() {
        await theirs.server.run("makeFolder", `${folder}/created-${++round}`);
        return theirs.measure("create", { files: FILES, inFlight: IN_FLIGHT, bytes: SMALL_FILE_BYTES });
      },
    };
  },
});

export const bounds: Group = {
  name: "bounds",
  rows: () => [
    ...(["plain", "TLS"] as const).flatMap((security) => [
      transferRow("up", security),
      transferRow("down", security),
      createRow(security),
    ]),
    encryptedRow("up"),
    encryptedRow("down"),
  ],
};
