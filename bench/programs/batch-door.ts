// The gRPC room's server before the bare driver of batches: what any door to PostgreSQL costs at least.
import { BareGroups } from "#bench/bare-groups.ts";
import { serveTasks } from "#bench/tasks.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { GrpcServer } from "#wire/grpc/server.ts";

interface Waiting {
  readonly data: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

let groups: BareGroups | undefined;
let waiting: Waiting[] = [];
let isWorking = false;

/** All that wait go together, while the next ones come. */
async function work(): Promise<void> {
  for (isWorking = true; waiting.length > 0; ) {
    const group = waiting;
    waiting = [];
    try {
      await groups?.take(group.map(({ data }) => data));
      for (const { resolve } of group) resolve();
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
  isWorking = false;
}

const server = new GrpcServer({});
server.addService(EchoService, {
  unary: async ({ data }) => {
    await new Promise<void>((resolve, reject) => {
      waiting.push({ data: new Uint8Array(data), resolve, reject });
      if (!isWorking) setImmediate(() => !isWorking && void work());
    });
    return { text: "taken" };
  },
});

serveTasks(
  {
    listen: async (url) => {
      groups = await BareGroups.open(String(url), "behind_a_door");
      return (await server.listen({ host: "127.0.0.1", port: 0 })).port;
    },
  },
  async () => {
    await server.close();
    await groups?.close();
  },
);
