// What tests of the sliced form share: an inbox whose pauses are counted, and a server with a channel to it.
import { MessageBudget } from "#wire/framing/frames.ts";
import { UploadRequestSchema } from "#wire/framing/gen/echo_pb.ts";
import { Decompressor } from "#wire/framing/gzip.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { SlicedField } from "#wire/framing/sliced-field.ts";
import { GrpcChannel } from "./client.ts";
import type { GrpcServer } from "./server.ts";
import { SlicedInbox } from "./sliced.ts";

/** The payload of an upload's chunk. */
export const FIELD: SlicedField<typeof UploadRequestSchema> = new SlicedField(
  UploadRequestSchema,
  "chunk.data",
);

/** An inbox of the payload that `field` finds, and how often it has paused its stream. */
export function inbox(field = FIELD): {
  inbox: SlicedInbox<typeof UploadRequestSchema>;
  pauses: () => number;
} {
  let pauses = 0;
  const stream = {
    pause: () => {
      pauses++;
    },
    resume: () => undefined,
  };
  const made = new SlicedInbox(UploadRequestSchema, field, {
    stream,
    limits: DEFAULT_SERVER_LIMITS,
    budget: new MessageBudget(128 * 1_048_576),
    unfolder: new Decompressor(DEFAULT_SERVER_LIMITS),
    encoding: "identity",
  });
  return { inbox: made, pauses: () => pauses };
}

/** Has a server listen until the test ends, and connects to it. */
export async function serve(
  t: { after(done: () => Promise<void>): void },
  server: GrpcServer,
): Promise<GrpcChannel> {
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
  t.after(async () => {
    channel.close();
    await server.close();
  });
  return channel;
}
