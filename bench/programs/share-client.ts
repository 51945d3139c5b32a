// One user of a FileServer: times the slowest looks at a file of its own, or shares a folder repeatedly.
import { percentile } from "#bench/measure.ts";
import { callsPerSecond } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

let channel: GrpcChannel | undefined;
let files: Client<typeof FileServer>;
let metadata: Record<string, string> = {};
let sharing: Promise<number> | undefined;
let stop = new AbortController();

serveTasks(
  {
    connect: async (input) => {
      const { address, user } = input as { address: string; user: string };
      channel = new GrpcChannel({ addresses: [address] });
      files = createClient(FileServer, channel);
      const session = await files.registerClient(
        { clientId: "bench", clientVersion: "0", deviceName: "bench" },
        { metadata: { authorization: `Bearer mock-jwt.${user}` } },
      );
      metadata = { authorization: `Bearer ${session.sessionToken}` };
      return null;
    },
    makeFile: async (path) => {
      await files.createFile({ path: String(path), data: Buffer.alloc(100) }, { metadata });
      return null;
    },
    // Rate per second of the slowest hundredth of looks, one after the other.
    slowLooks: async (input) => {
      const { path, calls, inFlight } = input as { path: string; calls: number; inFlight: number };
      const tookMs: number[] = [];
      await callsPerSecond(calls, inFlight, async () => {
        const start = performance.now();
        await files.getAttr({ path }, { metadata });
        tookMs.push(performance.now() - start);
      });
      return 1_000 / percentile(tookMs, 0.99);
    },
    // Shares a folder and ends the share, repeatedly, until stopped.
    startSharing: (input) => {
      const { path, user, inodes } = input as { path: string; user: string; inodes: number };
      stop = new AbortController();
      sharing = shareOverAndOver(path, user, { inodes: BigInt(inodes), until: stop.signal });
      return null;
    },
    // Answers the number of shares; fails when there was none.
    stopSharing: async () => {
      stop.abort();
      const times = (await sharing) ?? 0;
      if (times === 0) throw new Error("nothing was shared meanwhile");
      return times;
    },
  },
  () => channel?.close(),
);

async function shareOverAndOver(
  path: string,
  user: string,
  { inodes, until }: { inodes: bigint; until: AbortSignal },
): Promise<number> {
  let times = 0;
  while (!until.aborted) {
    const { affectedInodes } = await files.share({ path, user }, { metadata });
    if (affectedInodes !== inodes) throw new Error(`${affectedInodes} inodes were shared`);
    await files.unshare({ path, user }, { metadata });
    times += 1;
  }
  return times;
}
