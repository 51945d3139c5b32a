// A gRPC client that sends exactly the given bytes from a given local address, to break every rule.
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";

/** Longest wait for an answer. */
const ANSWER_WAIT_MS = 60_000;

/** The answer to a call. */
export interface Answer {
  /** grpc-status; -1 when the stream was closed without one. */
  readonly code: number;
  readonly message: string;
  /** The trailer svc-reason; empty when there is none. */
  readonly reason: string;
  /** Every trailer, or every header of a reply that has only those. */
  readonly trailers: Readonly<Record<string, string>>;
  readonly messages: readonly Buffer[];
}

/** Options of a call beside its messages. */
export interface CallSettings {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Leaves the request open after the last message: the answer must still come. */
  readonly leaveOpen?: boolean;
}

/** One connection. */
export class Wire {
  readonly #session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
    session.on("error", () => undefined);
  }

  /** Connects without TLS to host:port, from a local address of the test's choice. */
  static async connect(address: string, localAddress = "127.0.0.1"): Promise<Wire> {
    const [host = "", port = ""] = address.split(":");
    const socket = connectTcp({ host, port: Number(port), localAddress });
    await once(socket, "connect");
    return new Wire(
      connectHttp2(`http://${address}`, { createConnection: () => socket, maxSessionMemory: 64 }),
    );
  }

  /** Calls /grove.v1.FileServer/METHOD with these messages, each put into one frame. */
  async call(method: string, messages: readonly Uint8Array[], settings: CallSettings = {}): Promise<Answer> {
    const stream = this.#session.request({
      ":method": "POST",
      ":path": `/grove.v1.FileServer/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...(settings.token === undefined ? {} : { authorization: `Bearer ${settings.token}` }),
      ...settings.headers,
    });
    const late = setTimeout(() => stream.destroy(new Error(`no answer to ${method}`)), ANSWER_WAIT_MS);
    try {
      const answer = collect(stream);
      for (const message of messages) stream.write(frame(message));
      if (settings.leaveOpen !== true) stream.end();
      return await answer;
    } finally {
      clearTimeout(late);
      // A stream that both sides have ended closes itself; one more reset each would count as an attack.
      if (settings.leaveOpen === true) stream.close();
    }
  }

  /** Drops the connection. */
  close(): void {
    this.#session.destroy();
  }
}

function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function collect(stream: ClientHttp2Stream): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const body: Buffer[] = [];
  let trailers: Record<string, string> = {};
  const keep = (headers: object): void => {
    trailers = Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        name === "date" || name.startsWith(":") ? [] : [[name, String(value)]],
      ),
    );
  };
  const finish = (): void => {
    resolve({
      code: Number(trailers["grpc-status"] ?? -1),
      message: decodeURIComponent(trailers["grpc-message"] ?? ""),
      reason: trailers["svc-reason"] ?? "",
      trailers,
      messages: messagesOf(Buffer.concat(body)),
    });
  };
  stream.on("response", keep);
  stream.on("trailers", (headers) => {
    keep(headers);
    // The answer counts, even if the server still accepts data.
    finish();
  });
  stream.on("data", (piece: Buffer) => body.push(piece));
  stream.on("end", finish);
  stream.on("error", (error) => {
    if (trailers["grpc-status"] === undefined) reject(error);
    else finish();
  });
  return promise;
}

function messagesOf(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at + 5 <= body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    messages.push(body.subarray(at + 5, end));
    at = end;
  }
  return messages;
}
