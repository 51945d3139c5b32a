// Small files and names: durable creates against grpc-js without flushes, looks against the empty call.

import type { Lab } from "#bench/lab.ts";
import { startFileServer } from "#bench/node.ts";
import { connectedPair, type Security } from "#bench/pair.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const IN_FLIGHT = 64;
const FILE_BYTES = 4_096;
const FILES = 6_000;
const CALLS = 15_000;
const ENTRIES = 10_000;
const LISTINGS = 5;

/** The other side of creates, in the words of the table. */
export const GRPC_JS_CREATES = "@grpc/grpc-js, unary calls that write a file each and flush nothing";

const createRow = (security: Security): RatioRow => ({
  name: `4 KiB files, created durably on the disk, 64 in flight, ${security}`,
  against: GRPC_JS_CREATES,
  atLeast: security === "plain" ? 1.5 : 1.3,
  rate: "files/s",
  async sides(lab) {
    const ours = await onDisk(lab, security);
    const theirs = await connectedPair(lab, "grpc-js", security);
    const folder = await lab.folder("disk");
    const files = { files: FILES, inFlight: IN_FLIGHT, bytes: FILE_BYTES };
    let round = 0;
    const next = (): string => {
      round += 1;
      return `/created-${round}`;
    };
    return {
      async ours() {
        const made = next();
        await ours.client.run("makeFolder", made);
        return ours.measure("create", { ...files, folders: [made], prefix: "file" });
      },
      async theirs() {
        await theirs.server.run("makeFolder", folder + next());
        return theirs.measure("create", files);
      },
    };
  },
});

const attrRow = (security: Security): RatioRow => ({
  name: `GetAttr, 64 in flight, ${security}`,
  against: "the gRPC room's empty unary call",
  atLeast: 0.7,
  rate: "calls/s",
  async sides(lab) {
    const ours = await listed(lab, security);
    const room = await connectedPair(lab, "room", security);
    const paths = Array.from({ length: ENTRIES }, (_, at) => `/listed/file-${at}`);
    return {
      ours: () => ours.measure("getAttr", { paths, calls: CALLS, inFlight: IN_FLIGHT }),
      theirs: () => room.measure("unary", { calls: CALLS, inFlight: IN_FLIGHT, payloadBytes: 0 }),
    };
  },
});

const listRow = (security: Security): RatioRow => ({
  name: `ListDir of 10,000 entries, decoded by the caller, ${security}`,
  against: "serialising the same reply",
  atLeast: 0.4,
  rate: "listings/s",
  async sides(lab) {
    const pair = await listed(lab, security);
    const list = { path: "/listed", listings: LISTINGS, entries: ENTRIES };
    await pair.client.run("list", list);
    return {
      ours: () => pair.measure("list", list),
      theirs: () => pair.measure("serialise", { path: "/listed", times: LISTINGS }),
    };
  },
});

function onDisk(lab: Lab, security: Security): ReturnType<typeof startFileServer> {
  return lab.once(`fileserver on the disk ${security}`, async () =>
    startFileServer(lab, await lab.folder("disk"), security),
  );
}

/** The same server with a folder of 10,000 files in it. */
function listed(lab: Lab, security: Security): ReturnType<typeof startFileServer> {
  return lab.once(`listed ${security}`, async () => {
    const pair = await onDisk(lab, security);
    await pair.client.run("makeFolder", "/listed");
    const files = { folders: ["/listed"], prefix: "file", files: ENTRIES, inFlight: IN_FLIGHT, bytes: 16 };
    await pair.client.run("create", files);
    return pair;
  });
}

export const files: Group = {
  name: "files",
  rows: () =>
    (["plain", "TLS"] as const).flatMap((security) => [
      createRow(security),
      attrRow(security),
      listRow(security),
    ]),
};
