// Closes flooded connections, with frequent checks while a flood is likely.
import { constants } from "node:http2";
import type { Clock } from "#base/clock.ts";
import { AFTER_FLOOD_MS, FLOOD_WATCH_MS, YOUNG_CONNECTION_MS } from "#wire/framing/limits.ts";

/** The watched part of a connection. */
export interface WatchedConnection {
  readonly address: string;
  /** Steady time. */
  readonly openedAtMs: number;
  isFlooded(nowMs: number): boolean;
  destroy(code: number): void;
}

/** Dependencies of the watch. */
export interface FloodWatchDeps {
  readonly clock: Clock;
  readonly connections: () => Iterable<WatchedConnection>;
  /** Receives each flood, for the server's operator. */
  readonly onFlood: (error: Error) => void;
}

/** The watch of a server. */
export class FloodWatch {
  readonly #deps: FloodWatchDeps;
  /** When the last young connection ceases to be young. */
  #youngUntilMs = 0;
  /** End of the frequent checks after a flood. */
  #alarmedUntilMs = 0;
  #stop: (() => void) | undefined;

  constructor(deps: FloodWatchDeps) {
    this.#deps = deps;
  }

  /** Notes a new connection: most floods begin with one. */
  opened(): void {
    this.#youngUntilMs = this.#deps.clock.steadyMs() + YOUNG_CONNECTION_MS;
    this.#lookOften();
  }

  /** Checks all connections. */
  look(): void {
    this.#lookAt(0);
  }

  /** Stops checking until a connection comes. */
  close(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #lookOften(): void {
    this.#stop ??= this.#deps.clock.every(FLOOD_WATCH_MS, () => {
      const nowMs = this.#deps.clock.steadyMs();
      const isAlarmed = nowMs < this.#alarmedUntilMs;
      this.#lookAt(isAlarmed ? 0 : nowMs - YOUNG_CONNECTION_MS);
      if (!isAlarmed && nowMs >= this.#youngUntilMs) this.close();
    });
  }

  #lookAt(openedSinceMs: number): void {
    const { clock, connections, onFlood } = this.#deps;
    const nowMs = clock.steadyMs();
    for (const connection of connections()) {
      if (connection.openedAtMs < openedSinceMs || !connection.isFlooded(nowMs)) continue;
      connection.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      onFlood(new Error(`${connection.address} floods its connection with frames of no call`));
      this.#alarmedUntilMs = nowMs + AFTER_FLOOD_MS;
      this.#lookOften();
    }
  }
}
