// Follows one topic over /ws/actions, an action's output or a log; reconnects and resumes.

import { checkSession } from "./session.ts";

/** A message of the socket; `seq` counts within the topic. */
export interface TopicMessage {
  readonly type: string;
  readonly seq: number;
  readonly data: unknown;
}

/** The topic and its listeners. */
export interface TopicRequest {
  /** The subscription, built at each connection: it may have the number of the last message. */
  readonly request: () => object;
  readonly onMessage: (message: TopicMessage) => void;
  /** The socket is open, again or for the first time, and has subscribed. */
  readonly onOpen?: () => void;
  /** The socket was lost; a retry follows. */
  readonly onLost?: () => void;
}

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 15_000;
/** Close code of an ended session; the frame shows that. */
const NO_SESSION = 4401;

const renewals = new Set<() => void>();

/**
 * Opens all topics' sockets anew: the page's own connection was lost, so that theirs may be dead too. A browser hears
 * of that late or never, as after a sleep, while the page would say that it follows.
 */
export function renewTopics(): void {
  for (const renew of renewals) renew();
}

/** Begins to follow; the returned function ends it. */
export function followTopic(requested: TopicRequest): () => void {
  let socket: WebSocket | undefined;
  let retryMs = FIRST_RETRY_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const open = (): void => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const opened = new WebSocket(`${scheme}://${location.host}/ws/actions`, "svc.v1");
    socket = opened;
    opened.addEventListener("message", (event) => {
      if (isOver || socket !== opened || typeof event.data !== "string") return;
      const message = JSON.parse(event.data) as TopicMessage;
      if (message.type !== "hello") return requested.onMessage(message);
      retryMs = FIRST_RETRY_MS;
      opened.send(JSON.stringify(requested.request()));
      requested.onOpen?.();
    });
    let wasOpen = false;
    opened.addEventListener("open", () => {
      wasOpen = true;
    });
    opened.addEventListener("close", ({ code }) => {
      if (isOver || socket !== opened || code === NO_SESSION) return;
      // A refused upgrade has no reason in browsers: the check finds out whether the session has ended.
      if (!wasOpen) void checkSession();
      requested.onLost?.();
      timer = setTimeout(open, retryMs);
      retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
    });
  };
  const renew = (): void => {
    const dead = socket;
    socket = undefined;
    clearTimeout(timer);
    dead?.close();
    requested.onLost?.();
    open();
  };
  renewals.add(renew);
  open();
  return () => {
    isOver = true;
    renewals.delete(renew);
    clearTimeout(timer);
    socket?.close();
  };
}
