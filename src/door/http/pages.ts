// What the port of a door needs of the pages for browsers, as an interface.
import type { RequestHeaders } from "#door/webdav/conditions.ts";
import type { ClientFacts } from "#os/client-address.ts";

/** A request of a browser with its answer. */
export interface PageExchange extends AsyncIterable<Uint8Array> {
  readonly method: string | undefined;
  readonly headers: RequestHeaders;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** As the request names it. */
  readonly host: string;
  readonly facts: ClientFacts;
  /** Aborted with the end of the answer, complete or not. */
  readonly gone: AbortSignal;
  /** Calls back at the end of the answer; at once where it has ended. */
  whenGone(end: () => void): void;
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  setHeader(name: string, value: string | number | readonly string[]): void;
  removeHeader(name: string): void;
  write(chunk: string | Uint8Array): boolean;
  /** All parts as one. */
  writeAll(parts: readonly Uint8Array[]): boolean;
  once(event: "drain" | "close", listener: () => void): void;
  off(event: "drain" | "close", listener: () => void): void;
  end(chunk?: string | Uint8Array): void;
  destroy(): void;
  /** Lets the connection bring more at once, since somebody has signed in on it. */
  prove(): void;
}

/** Pages for browsers, and the interface behind them. */
export interface DoorPages {
  /** Answers a request; false where it has no such address. Throws GroveError and DavRefusal. */
  answer(exchange: PageExchange): Promise<boolean>;
}
