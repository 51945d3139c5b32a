// Node's HTTP module, taken so that a server's start does not load Node's fetch and WebSocket with it.
import type * as Http from "node:http";

// An import statement reads all that the module exports, and three of those names load undici: a tenth of the start.
const http: typeof Http = process.getBuiltinModule("node:http");

/** As in node:http. */
export const createServer: typeof Http.createServer = http.createServer;
/** As in node:http. */
export const request: typeof Http.request = http.request;
