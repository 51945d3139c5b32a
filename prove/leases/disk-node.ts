// A process of a node with disks of its own.

import type { Served } from "./calls.ts";
import { DiskMoves } from "./disk-moves.ts";
import { type ProcessDeps, ProcessMoves } from "./process.ts";
import type { RigProcess, Said } from "./rig-process.ts";
import type { StoredRoots } from "./stored-roots.ts";
import type { ProcessClock } from "./world.ts";

/** One process; the next one goes on with the same disk. */
export class DiskNode implements RigProcess {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly #stored: StoredRoots;
  readonly #moves: ProcessMoves;

  constructor(deps: ProcessDeps, stored: StoredRoots) {
    this.name = deps.name;
    this.clock = deps.clock;
    this.#stored = stored;
    stored.reopen();
    this.#moves = new ProcessMoves(deps, {
      moves: new DiskMoves(stored, (ms) => deps.clock.wait(ms)),
      roots: () => stored.owners(),
      onFenced: () => this.kill(),
    });
  }

  start(): void {
    void this.#moves.start();
  }

  get isOver(): boolean {
    return this.clock.isDead;
  }

  get served(): Served {
    return { clock: this.clock, handlers: this.#moves.handlers };
  }

  kill(): void {
    this.clock.isDead = true;
  }

  async stop(): Promise<void> {
    this.kill();
  }

  has(owner: string): boolean {
    return this.#mayServe(owner) && this.#stored.has(owner);
  }

  read(owner: string): Said {
    if (!this.#mayServe(owner)) return "refused";
    return this.#stored.values(owner) ?? "refused";
  }

  async write(owner: string, file: number, value: number): Promise<boolean> {
    if (!this.has(owner)) return false;
    try {
      this.#stored.write(owner, file, value);
      return true;
    } catch {
      return false;
    }
  }

  /** Removes what has been detached, and files without a row that uses them. */
  tidy(): void {
    this.#stored.purge();
    this.#stored.collect();
  }

  #mayServe(owner: string): boolean {
    return !this.isOver && !this.clock.machine.isAway && !this.#moves.source.isFrozen(owner);
  }
}
