// The service of this room's tests: it answers, streams, waits and fails on request.
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import type {
  EchoRequest,
  EchoRequestSchema,
  EchoResponseSchema,
  EchoService,
} from "#wire/framing/gen/echo_pb.ts";
import { type Code, StatusError } from "#wire/framing/status.ts";
import type { CallContext, ServiceHandlers, UnaryHandler } from "./handler.ts";
import { slicedClientStream, slicedServerStream } from "./sliced.ts";

type Reply = { text: string; count: number; metadata: Record<string, string>; data: Uint8Array };

const answer = (request: EchoRequest, context: CallContext): Reply => {
  const metadata: Record<string, string> = {};
  for (const [name, value] of context.metadata.entries()) {
    if (name.startsWith("x-")) metadata[name] = value;
  }
  return { text: request.text, count: request.count, metadata, data: request.data };
};

/**
 * Returns the x- headers as headers and as trailers, waits delayMs, then fails with failCode unless it is 0.
 */
const obey = async (request: EchoRequest, context: CallContext): Promise<void> => {
  for (const [name, value] of context.metadata.entries()) {
    if (!name.startsWith("x-")) continue;
    const back = name.endsWith("-bin") ? (context.metadata.getBinary(name) as Uint8Array) : value;
    context.responseHeaders.append(name, back);
    context.trailers.append(name, back);
  }
  if (request.delayMs > 0) await delay(request.delayMs, undefined, { signal: context.signal });
  if (request.failCode !== 0) {
    throw new StatusError(request.failCode as Code, request.text, {
      details:
        request.data.length === 0 ? [] : [{ typeUrl: "type.googleapis.com/test", value: request.data }],
    });
  }
};

/** Makes the handlers; two sets share no state. */
export const echoHandlers = (): ServiceHandlers<typeof EchoService> & {
  unary: UnaryHandler<typeof EchoRequestSchema, typeof EchoResponseSchema>;
} => ({
  async unary(request, context) {
    await obey(request, context);
    return answer(request, context);
  },

  async *expand(request, context) {
    for (let i = 0; i < request.count; i++) {
      if (i === 0 && request.failCode === 0) await obey(request, context);
      yield { ...answer(request, context), count: i };
    }
    if (request.failCode !== 0) await obey(request, context);
  },

  async collect(requests, context) {
    const texts: string[] = [];
    for await (const request of requests) {
      await obey(request, context);
      texts.push(request.text);
    }
    return { text: texts.join(","), count: texts.length };
  },

  async *converse(requests, context) {
    for await (const request of requests) {
      await obey(request, context);
      yield answer(request, context);
    }
  },

  upload: slicedClientStream("chunk.data", async (requests) => {
    let bytes = 0;
    let checksum = 0;
    let messages = 0;
    for (;;) {
      const next = requests.next();
      const part = next instanceof Promise ? await next : next;
      if (part === null) break;
      messages++;
      for (;;) {
        const read = part.payload.read();
        const slice = read instanceof Promise ? await read : read;
        if (slice === null) break;
        bytes += slice.length;
        checksum = crc32(slice, checksum);
      }
    }
    return { bytesWritten: BigInt(bytes), crc32: checksum, messages };
  }),

  download: slicedServerStream("chunk.data", async (request, _context, writer) => {
    const block = Buffer.alloc(65_536, 7);
    for (let at = 0; at < Number(request.size); ) {
      const size = Math.min(request.chunkBytes, Number(request.size) - at);
      const begun = writer.message({ part: { case: "chunk", value: { offset: BigInt(at) } } }, size);
      if (begun !== true) await begun;
      for (let sent = 0; sent < size; sent += block.length) {
        const written = writer.slice(block.subarray(0, Math.min(block.length, size - sent)));
        if (written !== true) await written;
      }
      at += size;
    }
  }),
});
