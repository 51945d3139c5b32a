// Follows one thing over /ws/actions, the output of an action or a log: comes back by itself and says where it was.

import { checkSession } from "./session.ts";

/** What comes over the socket; `seq` counts within what is followed. */
export interface TopicMessage {
  readonly type: string;
  readonly seq: number;
  readonly data: unknown;
}

/** What is followed, and who is told. */
export interface TopicRequest {
  /** The request to subscribe, asked at each connection anew: it may carry the number of what came last. */
  readonly request: () => object;
  readonly onMessage: (message: TopicMessage) => void;
  /** The socket is open, for the first time or again, and has asked. */
  readonly onOpen?: () => void;
  /** The socket was lost; it is tried again. */
  readonly onLost?: () => void;
}

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 15_000;
/** The session has ended: nothing is followed, and the frame says so already. */
const NO_SESSION = 4401;

/** Begins; returns how to end it. */
export function followTopic(wish: TopicRequest): () => void {
  let socket: WebSocket | undefined;
  let retryMs = FIRST_RETRY_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const open = (): void => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const opened = new WebSocket(`${scheme}://${location.host}/ws/actions`, "svc.v1");
    socket = opened;
    opened.addEventListener("message", (event) => {
      if (isOver || typeof event.data !== "string") return;
      const message = JSON.parse(event.data) as TopicMessage;
      if (message.type !== "hello") return wish.onMessage(message);
      retryMs = FIRST_RETRY_MS;
      opened.send(JSON.stringify(wish.request()));
      wish.onOpen?.();
    });
    let wasOpen = false;
    opened.addEventListener("open", () => {
      wasOpen = true;
    });
    opened.addEventListener("close", ({ code }) => {
      if (isOver || code === NO_SESSION) return;
      // Who has no session is refused before the upgrade, and no browser says why: the frame asks, and ends this where it was that.
      if (!wasOpen) void checkSession();
      wish.onLost?.();
      timer = setTimeout(open, retryMs);
      retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
    });
  };
  open();
  return () => {
    isOver = true;
    clearTimeout(timer);
    socket?.close();
  };
}
