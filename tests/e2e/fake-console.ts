// A fake console inside a browser's network, with a test's nodes, users and socket messages.
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page, Route, WebSocketRoute } from "playwright-core";
import { type FakeCluster, replyTo, totalsOf } from "#testing/fake-cluster.ts";

/** The built pages. */
export const BUILT = fileURLToPath(new URL("../../dist/web/", import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
/** The address of the pages; nothing listens there. */
export const FAKE_URL = "http://grove.test";

/** A fake console behind one page. */
export interface FakeConsole {
  readonly cluster: FakeCluster;
  /** Requested paths, the pages' own files included. */
  readonly asked: string[];
  /** The number of sockets opened so far. */
  opened(): number;
  /** Further answers by "METHOD /path"; a function gets the body. */
  readonly replies: Map<string, object | ((body: unknown) => object)>;
  /** Topics subscribed on /ws/actions, the newest last. */
  readonly subscribed: unknown[];
  /** Sends a message to the followers of a topic. */
  tell(type: string, seq: number, data: unknown): void;
  /** Closes the sockets that follow a topic; they reconnect. */
  cutTopics(): void;
  /** Sends a message over the open socket. */
  say(type: string, data: unknown): void;
  /** Sends a snapshot of the current nodes. */
  snapshot(): void;
  /** Closes the socket, and refuses new ones until `isAway` is false again. */
  hangUp(code: number): void;
  isAway: boolean;
}

/** Puts the fake console before a page. */
export async function fakeConsole(page: Page, cluster: FakeCluster): Promise<FakeConsole> {
  let socket: WebSocketRoute | undefined;
  let opened = 0;
  let seq = 0;
  const topics = new Set<WebSocketRoute>();
  const self: FakeConsole = {
    cluster,
    asked: [],
    isAway: false,
    replies: new Map(),
    subscribed: [],
    tell(type, number, data) {
      const text = JSON.stringify({ v: 1, type, seq: number, ts: Date.now() / 1_000, data });
      for (const topic of topics) topic.send(text);
    },
    cutTopics() {
      for (const topic of topics) void topic.close({ code: 1012 });
      topics.clear();
    },
    opened: () => opened,
    say(type, data) {
      socket?.send(JSON.stringify({ v: 1, type, seq: ++seq, ts: Date.now() / 1_000, data }));
    },
    snapshot: () => self.say("metrics.snapshot", { nodes: cluster.nodes, cluster: totalsOf(cluster) }),
    hangUp(code) {
      void socket?.close({ code });
      socket = undefined;
    },
  };
  await page.routeWebSocket(/\/ws\/cluster/, async (ws) => {
    opened++;
    if (self.isAway) return ws.close({ code: 1012 });
    socket = ws;
    self.say("hello", { server_version: "0", session_expires_at: null, resume_from_seq: 0 });
    self.snapshot();
  });
  await page.routeWebSocket(/\/ws\/actions/, (ws) => {
    topics.add(ws);
    ws.onMessage((text) => void self.subscribed.push(JSON.parse(String(text))));
    ws.onClose(() => void topics.delete(ws));
    ws.send(JSON.stringify({ v: 1, type: "hello", seq: 0, ts: 0, data: {} }));
  });
  await page.route(`${FAKE_URL}/**`, (route) => answer(self, route));
  return self;
}

async function answer(self: FakeConsole, route: Route): Promise<void> {
  const { pathname, searchParams } = new URL(route.request().url());
  self.asked.push(pathname);
  if (!pathname.startsWith("/api/")) return sendFile(route, pathname);
  if (self.isAway) return route.abort("connectionrefused");
  const own = self.replies.get(`${route.request().method()} ${pathname}`);
  const body =
    own === undefined
      ? replyTo(self.cluster, pathname, searchParams)
      : typeof own === "function"
        ? own(route.request().postDataJSON())
        : own;
  if (body === undefined) {
    return route.fulfill({
      status: 404,
      contentType: "application/problem+json",
      body: JSON.stringify({ code: "NOT_FOUND", detail: "There is nothing here.", status: 404 }),
    });
  }
  return route.fulfill({ contentType: "application/json", body: JSON.stringify(body) });
}

async function sendFile(route: Route, pathname: string): Promise<void> {
  const name = /^\/(?:assets\/|icon\.svg$)/.test(pathname) ? pathname : "index.html";
  await route.fulfill({
    contentType: TYPES[extname(name)] ?? "text/plain",
    body: await readFile(join(BUILT, name)),
  });
}
