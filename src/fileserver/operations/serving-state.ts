// Whether this process serves, and if not, why: read by every call, health and /ready.
import { GroveError } from "#base/errors.ts";

type Phase = "starting" | "serving" | "draining";

/** The state of one process, from its start to its end. */
export class ServingState {
  #phase: Phase = "starting";
  #fencedBecause: string | undefined;
  readonly #listeners = new Set<(isServing: boolean) => void>();

  /** True while calls are taken. */
  get isServing(): boolean {
    return this.#phase === "serving" && this.#fencedBecause === undefined;
  }

  /** True while running calls are finished and new ones refused. */
  get isDraining(): boolean {
    return this.#phase === "draining";
  }

  /** True once another process holds this node's id. */
  get isFenced(): boolean {
    return this.#fencedBecause !== undefined;
  }

  /** Takes calls from now on. */
  serve(): void {
    this.#phase = "serving";
    this.#tell();
  }

  /** Refuses new calls; running ones may finish. */
  drain(): void {
    this.#phase = "draining";
    this.#tell();
  }

  /** Stops everything: another process holds this node's id (D19). Streams stop at their next chunk. */
  fence(reason: string): void {
    this.#fencedBecause ??= reason;
    this.#tell();
  }

  /** Throws STARTING or NODE_DRAINING unless calls are taken. */
  requireServing(): void {
    if (this.#phase === "serving" && this.#fencedBecause === undefined) return;
    this.requireHeld();
    if (this.#phase === "starting") throw new GroveError("STARTING", "this node is starting; try again");
    throw new GroveError("NODE_DRAINING", "this node is stopping; try again");
  }

  /** Throws NODE_DRAINING once another process holds this node's id. */
  requireHeld(): void {
    if (this.#fencedBecause !== undefined) {
      throw new GroveError("NODE_DRAINING", `this process serves no more: ${this.#fencedBecause}`);
    }
  }

  /** Why calls are refused, for /ready; empty while they are taken. */
  reasons(): string[] {
    if (this.#fencedBecause !== undefined) return [`fenced: ${this.#fencedBecause}`];
    return this.#phase === "serving" ? [] : [this.#phase];
  }

  /** Calls back at every change. */
  onChange(listener: (isServing: boolean) => void): void {
    this.#listeners.add(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener(this.isServing);
  }
}
