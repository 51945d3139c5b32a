// A process of the rig as users, faults and judges see it.
import type { Served } from "./calls.ts";
import type { ProcessClock } from "./world.ts";

/**
 * What a reader is told of a root: the values of its files; "refused" where the process may not say, "nothing"
 * where it must and cannot.
 */
export type Said = readonly number[] | "nothing" | "refused";

/** See above. */
export interface RigProcess {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly isOver: boolean;
  readonly served: Served;
  start(): void;
  /** Ends it at this moment. */
  kill(): void;
  /** Ends it in good order. */
  stop(): Promise<void>;
  /** True while it would take a change of this user's root. */
  has(owner: string): boolean;
  read(owner: string): Said;
  /** Changes a file; true once that is acknowledged. */
  write(owner: string, file: number, value: number): Promise<boolean>;
  tidy(): void;
}
