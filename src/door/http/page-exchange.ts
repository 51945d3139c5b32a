// A request of a browser as the pages see it.
import type { ClientFacts } from "#os/client-address.ts";
import type { PacedExchange } from "./paced-exchange.ts";
import type { PageExchange } from "./pages.ts";

/** What the front knows of a request beside the exchange. */
export interface PageFacts {
  readonly path: string;
  readonly host: string;
  readonly facts: ClientFacts;
  readonly prove: () => void;
  /** True for a client that sends its body only when it is told to. */
  readonly awaitsContinue: boolean;
}

/** An exchange with its address taken apart. */
export function pageExchange(exchange: PacedExchange, page: PageFacts): PageExchange {
  const { path, host, facts, prove, awaitsContinue } = page;
  const { url } = exchange;
  const at = url.indexOf("?");
  const query = new URLSearchParams(at === -1 ? "" : url.slice(at + 1).split("#", 1)[0]);
  return {
    path,
    host,
    facts,
    prove,
    query,
    method: exchange.method,
    headers: exchange.headers,
    get gone() {
      return exchange.gone;
    },
    whenGone: (end) => exchange.whenGone(end),
    get statusCode() {
      return exchange.statusCode;
    },
    set statusCode(status) {
      exchange.statusCode = status;
    },
    get headersSent() {
      return exchange.headersSent;
    },
    get destroyed() {
      return exchange.destroyed;
    },
    setHeader: (name, value) => exchange.setHeader(name, value),
    removeHeader: (name) => exchange.removeHeader(name),
    write: (chunk) => exchange.write(chunk),
    writeAll: (parts) => exchange.writeAll(parts),
    once: (event, listener) => exchange.once(event, listener),
    off: (event, listener) => exchange.off(event, listener),
    end: (chunk) => exchange.end(chunk),
    destroy: () => exchange.destroy(),
    [Symbol.asyncIterator]() {
      if (awaitsContinue) exchange.writeContinue();
      return exchange[Symbol.asyncIterator]();
    },
  };
}
