// The thread of a loop: it serves connections of the FileServer, whose calls the main thread decides.
import { parentPort, workerData } from "node:worker_threads";
import { type DescMessage, toBinary } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import { StallWatch } from "#fileserver/transfers/download-pump.ts";
import { UploadBudget } from "#storage/chunks/upload-budget.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import type { CallContext } from "#wire/grpc/call-context.ts";
import { HealthService } from "#wire/grpc/health.ts";
import { addReflection } from "#wire/grpc/reflection.ts";
import { type SlicedWriter, slicedClientStream, slicedServerStream } from "#wire/grpc/sliced.ts";
import { LoopGuest } from "#wire/loops/loop-guest.ts";
import type { ToLoop } from "#wire/loops/loop-messages.ts";
import {
  DownloadRequestSchema,
  type DownloadResponseSchema,
  FileServer,
  type UploadRequestSchema,
  type UploadResponseSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import {
  PullChunkRequestSchema,
  type PullChunkResponseSchema,
  PullRowsRequestSchema,
  type PullRowsResponseSchema,
  RootSource,
} from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { LoopDownload } from "./loop-download.ts";
import type { LoopSetting, LoopThreadData } from "./loop-threads.ts";
import { LoopUpload } from "./loop-upload.ts";
import { CALL_COSTS, REQUEST_LIMITS, SOURCE_REQUESTS, USUAL_REQUEST } from "./request-limits.ts";

const port = parentPort;
if (port === null) throw new Error("a loop runs in a thread of its own");
const { start, reflection } = workerData as LoopThreadData;
/** A part of the budget of all loops. */
const budget = new UploadBudget(start.loops);
const stalls = new StallWatch(systemClock);
const health = new HealthService();
const guest = new LoopGuest({
  port,
  start,
  onSet: (message) => {
    const { service, isServing } = message as LoopSetting;
    health.setServing(service, isServing);
  },
});
health.setServing("", false);
health.addTo(guest.server);
guest.forward(
  FileServer,
  { requests: REQUEST_LIMITS, otherRequests: USUAL_REQUEST, costs: CALL_COSTS },
  {
    uploadFile: slicedClientStream<typeof UploadRequestSchema, typeof UploadResponseSchema>(
      "chunk.data",
      (requests, context) => {
        const call = guest.callOf(context);
        void new LoopUpload(call, requests, budget.shareOf(context.standing.party)).run();
        return call.run(context) as Promise<never>;
      },
    ),
    downloadFile: slicedServerStream<typeof DownloadRequestSchema, typeof DownloadResponseSchema>(
      "chunk.data",
      async (request, context, writer) => {
        const call = guest.callOf(context);
        void new LoopDownload(call, writer, stalls);
        call.request(toBinary(DownloadRequestSchema, request));
        await call.run(context);
      },
    ),
  },
);
guest.forward(RootSource, SOURCE_REQUESTS, {
  pullRows: slicedServerStream<typeof PullRowsRequestSchema, typeof PullRowsResponseSchema>(
    "piece",
    (request, context, writer) => relay(toBinary(PullRowsRequestSchema, request), context, writer),
  ),
  pullChunk: slicedServerStream<typeof PullChunkRequestSchema, typeof PullChunkResponseSchema>(
    "data",
    (request, context, writer) => relay(toBinary(PullChunkRequestSchema, request), context, writer),
  ),
});
if (reflection) addReflection(guest.server, [FileServer, RootSource, Health]);

/** Sends the messages of a reply stream as the main thread has framed them. */
async function relay(
  request: Uint8Array,
  context: CallContext,
  writer: Pick<SlicedWriter<DescMessage>, "framed">,
): Promise<void> {
  const call = guest.callOf(context);
  call.onWrite = (bytes) => writer.framed(bytes);
  call.request(request);
  await call.run(context);
}

port.on("message", (batch: readonly ToLoop[]) => guest.take(batch));
