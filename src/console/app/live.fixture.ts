// A console with only its WebSockets for tests, and clients that record their messages.
import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";
import type { Audience } from "#base/audience.ts";
import { stringify64 } from "#base/json64.ts";
import { silentLogger } from "#base/log.ts";
import type { OperatorSession } from "#console/http/route.ts";
import { Hub, type HubDeps } from "#console/live/hub.ts";
import { liveRoutes } from "#console/routes/live-routes.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";
import type { AppDeps } from "./app.ts";

/** A message as received. */
export interface Received {
  readonly v: 1;
  readonly type: string;
  readonly seq: number;
  readonly ts: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A test's socket. */
export interface TestSocket {
  readonly socket: WebSocket;
  readonly received: Received[];
  /** The frames as received. */
  readonly raw: string[];
  /** Resolves to the first unconsumed message of this type. */
  next(type: string): Promise<Received>;
  /** Resolves to the close code. */
  readonly closed: Promise<number>;
  say(message: unknown): void;
}

/** A hub with its routes. */
export interface LiveUnderTest extends AppUnderTest {
  readonly hub: Hub;
  /** Content of snapshots; tests may change it. */
  readonly cluster: Record<Audience, object>;
  /** Number of serialised snapshots. */
  readonly serialised: { count: number };
  /** Valid tickets. */
  readonly tickets: Map<string, OperatorSession>;
  /** Opens a socket. Rejects with the status of a refused upgrade. */
  open(
    path: string,
    options?: { headers?: Record<string, string>; protocols?: string[] } & ClientOptions,
  ): Promise<TestSocket>;
  openAsOperator(path: string): Promise<TestSocket>;
}

/** Starts one. */
export async function startLive(
  overrides: Partial<HubDeps> = {},
  options: Partial<AppDeps> = {},
): Promise<LiveUnderTest> {
  const cluster = { visitor: { nodes: [], cluster: {} }, operator: { nodes: [], cluster: {} } };
  const serialised = { count: 0 };
  const tickets = new Map<string, OperatorSession>();
  let hub: Hub | undefined;
  const app = await startApp((plugged, { clock, sessions }) => {
    hub = new Hub({
      clock,
      log: silentLogger,
      isSessionLive: (session) => sessions.isLive(session),
      snapshot: (audience) => {
        serialised.count++;
        return Buffer.from(stringify64(cluster[audience]));
      },
      ...overrides,
    });
    const redeemTicket = (ticket: string): OperatorSession | undefined => {
      const session = tickets.get(ticket);
      tickets.delete(ticket);
      return session;
    };
    sessions.onEnd((session) => hub?.endSession(session));
    liveRoutes(plugged, { hub, redeemTicket });
  }, options);
  if (hub === undefined) throw new TypeError("no hub");
  const live = hub;
  const base = app.url.replace(/^http/, "ws");
  const open: LiveUnderTest["open"] = (path, { protocols = [], ...options } = {}) =>
    openSocket(new WebSocket(`${base}${path}`, protocols, options));
  return {
    ...app,
    hub: live,
    cluster,
    serialised,
    tickets,
    open,
    openAsOperator: (path) => open(path, { headers: { authorization: `Bearer ${app.token}` } }),
    async close() {
      await live.close();
      await app.close();
    },
  };
}

async function openSocket(socket: WebSocket): Promise<TestSocket> {
  const received: Received[] = [];
  const raw: string[] = [];
  const waiting: { type: string; resolve: (message: Received) => void }[] = [];
  const unasked: Received[] = [];
  socket.on("message", (data) => {
    const text = (data as Buffer).toString("utf8");
    const message = JSON.parse(text) as Received;
    raw.push(text);
    received.push(message);
    const at = waiting.findIndex(({ type }) => type === message.type);
    if (at < 0) unasked.push(message);
    else waiting.splice(at, 1)[0]?.resolve(message);
  });
  const closed = new Promise<number>((resolve) => socket.once("close", resolve));
  const refused = new Promise<never>((_resolve, reject) => {
    socket.once("unexpected-response", (_request, response) => {
      reject(new Error(`status ${response.statusCode}`));
      socket.terminate();
    });
    socket.on("error", reject);
  });
  refused.catch(() => undefined);
  await Promise.race([once(socket, "open"), refused]);
  return {
    socket,
    received,
    raw,
    closed,
    next(type) {
      const at = unasked.findIndex((message) => message.type === type);
      const [found] = at < 0 ? [] : unasked.splice(at, 1);
      if (found !== undefined) return Promise.resolve(found);
      return new Promise((resolve) => waiting.push({ type, resolve }));
    },
    say: (message) => socket.send(typeof message === "string" ? message : JSON.stringify(message)),
  };
}
