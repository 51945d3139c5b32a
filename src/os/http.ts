// Node's HTTP module, loaded without Node's fetch and WebSocket so that servers start faster.
import type * as Http from "node:http";

// An import statement reads all exports, and three of them load undici: a tenth of a server's start.
const http: typeof Http = process.getBuiltinModule("node:http");

/** As in node:http. */
export const createServer: typeof Http.createServer = http.createServer;
/** As in node:http. */
export const request: typeof Http.request = http.request;
/** As in node:http. */
export const Agent: typeof Http.Agent = http.Agent;
