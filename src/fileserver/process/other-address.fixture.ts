// A bare gRPC client that connects from an address of the test's choice, as another machine would.

import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { StatusError, statusOf } from "#wire/framing/status.ts";
import { GetAttrRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Calls from that address. */
export interface OtherAddress {
  /** Resolves when OK, rejects with the StatusError. */
  getAttr(path: string, token: string): Promise<void>;
  close(): void;
}

/**
 * Connects from a local address, such as 127.0.0.2, to host:port. A server says goodbye to a connection that has
 * proven nothing for 30 s, so a call that finds it closed goes over a new one, as that of any gRPC client does.
 */
export async function channelFrom(localAddress: string, address: string): Promise<OtherAddress> {
  let session = await connectFrom(localAddress, address);
  const renewed = async (): Promise<ClientHttp2Session> => {
    if (isOver(session)) session = await connectFrom(localAddress, address);
    return session;
  };
  return {
    async getAttr(path, token) {
      const used = await renewed();
      try {
        await call(used, path, token);
      } catch (error) {
        // The goodbye and the call met on their way.
        if (error instanceof StatusError || !isOver(used)) throw error;
        await call(await renewed(), path, token);
      }
    },
    close: () => session.destroy(),
  };
}

async function connectFrom(localAddress: string, address: string): Promise<ClientHttp2Session> {
  const [host = "", port = ""] = address.split(":");
  const socket = connectTcp({ host, port: Number(port), localAddress });
  await once(socket, "connect");
  const session = connectHttp2(`http://${address}`, { createConnection: () => socket });
  session.on("error", () => undefined);
  return session;
}

function isOver(session: ClientHttp2Session): boolean {
  return session.closed || session.destroyed;
}

function call(session: ClientHttp2Session, path: string, token: string): Promise<void> {
  const body = Buffer.from(toBinary(GetAttrRequestSchema, create(GetAttrRequestSchema, { path })));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/grove.v1.FileServer/GetAttr",
      "content-type": "application/grpc",
      te: "trailers",
      authorization: `Bearer ${token}`,
    });
    const finish = (raw: readonly string[]): void => {
      const status = statusOf(raw);
      if (status === null) resolve();
      else if (status instanceof StatusError) reject(status);
    };
    stream.on("response", (_headers, _flags, raw) => finish(raw));
    stream.on("trailers", (_headers, _flags, raw) => finish(raw ?? []));
    stream.on("error", reject);
    stream.resume();
    stream.end(Buffer.concat([head, body]));
  });
}
