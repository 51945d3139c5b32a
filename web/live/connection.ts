// The connection to /ws/cluster: reconnects by itself, knows the age of its data, and falls back to polling.
import type { AlertRecord } from "#wire/webapi/alert.ts";
import type { LiveNode } from "../words/live-node.ts";
import type { LiveMessage } from "./message-pieces.ts";
import { MessageReader } from "./message-reader.ts";

/** Phase of the connection. */
export type Phase = "connecting" | "live" | "reconnecting";

/** State of the connection; a new object with every change. */
export interface ConnectionState {
  readonly phase: Phase;
  /** Date.now() at the last snapshot, by this machine's clock; undefined before the first. */
  readonly lastSnapshotAtMs: number | undefined;
  /** Date.now() of the next try, while reconnecting. */
  readonly retryAtMs: number | undefined;
}

/** Listeners of the connection. */
export interface LiveHandlers {
  snapshot(data: { nodes: readonly LiveNode[]; cluster: unknown }, wallSeconds: number): void;
  alert(kind: "alert.raised" | "alert.changed" | "alert.resolved", alert: AlertRecord): void;
  /** The connection is back: earlier data may have missed changes. */
  reconnected(): void;
  sessionExpiring(expiresAt: number): void;
  sessionEnded(): void;
}

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;
/** Silence after which a connection counts as lost; snapshots come every 5 s, pings every 20 s. */
const SILENCE_MS = 30_000;
/** Age of a snapshot after a sleep that suggests a dead socket. */
const OLD_MS = 15_000;
const NO_SESSION = 4401;

/** One socket at a time, with backoff between tries; a page that wakes up tries at once. */
export class Connection {
  readonly #url: string;
  readonly #handlers: LiveHandlers;
  readonly #listeners = new Set<() => void>();
  #state: ConnectionState = { phase: "connecting", lastSnapshotAtMs: undefined, retryAtMs: undefined };
  #socket: WebSocket | undefined;
  #reader: MessageReader | undefined;
  #retryMs = FIRST_RETRY_MS;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #silenceTimer: ReturnType<typeof setTimeout> | undefined;
  #lastSeq = 0;
  #wasLost = false;

  constructor(url: string, handlers: LiveHandlers) {
    this.#url = url;
    this.#handlers = handlers;
  }

  /** Connects, and reconnects until stop. */
  start(): void {
    document.addEventListener("visibilitychange", this.#wake);
    window.addEventListener("online", this.#wake);
    this.#open();
  }

  /** Ends the connection for good. */
  stop(): void {
    document.removeEventListener("visibilitychange", this.#wake);
    window.removeEventListener("online", this.#wake);
    this.#drop();
  }

  /** Reconnects at once, as after a sign-in, which needs an operator's socket. */
  restart(): void {
    this.#drop();
    this.#lastSeq = 0;
    this.#open();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly state = (): ConnectionState => this.#state;

  readonly #wake = (): void => {
    if (document.visibilityState !== "visible") return;
    const { phase, lastSnapshotAtMs = Date.now() } = this.#state;
    if (phase === "live" && Date.now() - lastSnapshotAtMs < OLD_MS) return;
    if (phase === "live") this.#drop();
    // A try under way continues.
    if (this.#socket === undefined) this.restartSoon(0);
  };

  /** Reconnects after a pause. */
  restartSoon(delayMs: number): void {
    clearTimeout(this.#retryTimer);
    this.#wasLost = true;
    this.#set({ phase: "reconnecting", retryAtMs: Date.now() + delayMs });
    this.#retryTimer = setTimeout(() => this.#open(), delayMs);
  }

  #open(): void {
    const socket = new WebSocket(this.#url, "svc.v1");
    const reader = new MessageReader((message) => this.#take(message));
    this.#socket = socket;
    this.#reader = reader;
    this.#hush();
    socket.addEventListener("message", (event) => {
      if (this.#socket !== socket || typeof event.data !== "string") return;
      this.#hush();
      reader.read(event.data);
    });
    socket.addEventListener("close", (event) => {
      if (this.#socket !== socket) return;
      this.#forget();
      if (event.code === NO_SESSION) this.#handlers.sessionEnded();
      this.restartSoon(this.#retryMs * (0.75 + Math.random() / 2));
      this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
    });
  }

  #take(message: LiveMessage): void {
    switch (message.type) {
      case "hello":
        this.#retryMs = FIRST_RETRY_MS;
        this.#set({ phase: "live", retryAtMs: undefined });
        if (this.#lastSeq > 0)
          this.#socket?.send(JSON.stringify({ type: "resume", after_seq: this.#lastSeq }));
        if (this.#wasLost) this.#handlers.reconnected();
        this.#wasLost = false;
        break;
      case "metrics.snapshot":
        this.#handlers.snapshot(message.data as { nodes: LiveNode[]; cluster: unknown }, message.ts);
        this.#set({ phase: "live", lastSnapshotAtMs: Date.now(), retryAtMs: undefined });
        break;
      case "alert.raised":
      case "alert.changed":
      case "alert.resolved":
        this.#handlers.alert(message.type, message.data as AlertRecord);
        break;
      case "session.expiring":
        this.#handlers.sessionExpiring((message.data as { expires_at: number }).expires_at);
        break;
      default:
    }
    if (message.seq > this.#lastSeq) this.#lastSeq = message.seq;
  }

  /** Restarts the timer of the silence. */
  #hush(): void {
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = setTimeout(() => {
      this.#drop();
      this.restartSoon(0);
    }, SILENCE_MS);
  }

  #drop(): void {
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#silenceTimer);
    const socket = this.#socket;
    this.#forget();
    socket?.close();
  }

  /** Ignores everything more from this socket. */
  #forget(): void {
    this.#socket = undefined;
    this.#reader?.close();
    this.#reader = undefined;
  }

  #set(change: Partial<ConnectionState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }
}
