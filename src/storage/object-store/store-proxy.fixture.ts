// A proxy between Grove and a real store that spoils chosen requests: slow, cut, refused, unanswered, sent twice.
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to one request. */
export type Fault =
  | "none"
  /** 503 SlowDown, without reaching the store. */
  | "slow-down"
  /** The connection ends in the middle of the request's body. */
  | "cut-request"
  /** The store has done it, and the connection ends without an answer. */
  | "lost-answer"
  /** The connection ends in the middle of the answer. */
  | "cut-answer"
  /** The store gets it twice, and the second answer is the client's. */
  | "duplicate"
  /** No answer ever comes. */
  | "silent"
  /** One byte of the answer is another one. */
  | "flipped-answer"
  /** One byte of the request's body is another one. */
  | "flipped-request";

/** A proxy of plain HTTP; the signature stays true, since the host's name is passed on. */
export class StoreProxy {
  /** Decides about each request, in the order of arrival. */
  fault: (request: { method: string; url: string }) => Fault = () => "none";
  /** Requests that arrived, such as "PUT /bucket/key". */
  readonly seen: string[] = [];
  /** Requests that are under way now, and most that ever were. */
  under = { now: 0, most: 0 };
  /** Holds every answer back until it resolves. */
  gate: Promise<void> = Promise.resolve();
  readonly #target: number;
  readonly #server = createServer((request, response) => void this.#pass(request, response));

  constructor(targetPort: number) {
    this.#target = targetPort;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(cleanUp: (end: () => Promise<void>) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    cleanUp(async () => {
      this.#server.closeAllConnections();
      const closed = Promise.withResolvers<void>();
      this.#server.close(() => closed.resolve());
      await closed.promise;
    });
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    this.seen.push(`${method} ${url}`);
    this.under.most = Math.max(this.under.most, ++this.under.now);
    try {
      await this.#spoil(this.fault({ method, url }), request, response);
    } catch {
      response.destroy();
    } finally {
      this.under.now--;
    }
  }

  async #spoil(fault: Fault, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (fault === "cut-request") {
      request.once("data", () => request.socket.destroy());
      request.resume();
      return;
    }
    const body = await bytesOf(request);
    if (fault === "silent") return;
    if (fault === "slow-down") {
      response.writeHead(503, { "content-type": "application/xml" });
      response.end("<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>");
      return;
    }
    if (fault === "flipped-request") flip(body);
    let answer = await this.#forward(request, body);
    if (fault === "duplicate") answer = await this.#forward(request, body);
    await this.gate;
    if (fault === "lost-answer") {
      request.socket.destroy();
      return;
    }
    if (fault === "flipped-answer") flip(answer.body);
    response.writeHead(answer.status, answer.headers);
    if (fault === "cut-answer") {
      response.write(answer.body.subarray(0, answer.body.length / 2), () => request.socket.destroy());
      return;
    }
    response.end(answer.body);
  }

  async #forward(
    { method, url, headers }: IncomingMessage,
    body: Buffer,
  ): Promise<{ status: number; headers: IncomingMessage["headers"]; body: Buffer }> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const onward = httpRequest(
      { host: "127.0.0.1", port: this.#target, method, path: url, headers },
      resolve,
    );
    onward.once("error", reject);
    onward.end(body);
    const answer = await promise;
    return { status: answer.statusCode ?? 0, headers: answer.headers, body: await bytesOf(answer) };
  }
}

function flip(bytes: Buffer): void {
  const at = Math.floor(bytes.length / 2);
  if (bytes.length > 0) bytes[at] = (bytes[at] ?? 0) ^ 1;
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
