// Detects memory growth of servers under attack: memory goes up and down, so its lowest values are compared.

/**
 * Most by which the floor may rise over the second half of a campaign. Of 2,000,000 inputs 750,000 lie
 * between the least of its first quarter and that of its last, and 40 bytes of each are 28 MB. V8 lets its
 * heap become up to four times what lives in it before it collects all of it, so that objects which stay show
 * up to four times.
 */
export const GROWTH_MAX_MB = 24;
/** After fewer inputs a server's heap still grows towards its size. */
const WARM_INPUTS = 100_000;

/**
 * Returns the input from which servers are judged: by then bounded collections (remembered answers, compiled
 * code) are nearly full.
 */
export function warmFromOf(goal: number): number {
  return Math.max(goal / 2, WARM_INPUTS);
}

/**
 * Two stretches of a campaign, the first once the servers are warm, the second at the end: each server's
 * least memory in them.
 */
export class MemoryFloors {
  readonly #warmFrom: number;
  readonly #stretch: number;
  readonly #goal: number;
  readonly #early = new Map<string, number>();
  readonly #late = new Map<string, number>();

  /** Counts in units of the campaign; one that ends before its servers are warm gives no result. */
  constructor(goal: number, warmFrom: number) {
    this.#goal = goal;
    this.#warmFrom = warmFrom;
    this.#stretch = Math.max(0, (goal - warmFrom) / 4);
  }

  /** Notes a server's memory now. */
  note(done: number, name: string, memoryMb: number): void {
    if (done >= this.#warmFrom && done < this.#warmFrom + this.#stretch) lower(this.#early, name, memoryMb);
    if (done >= this.#goal - this.#stretch && done >= this.#warmFrom) lower(this.#late, name, memoryMb);
  }

  /** Returns by how many MB a server's floor has risen; 0 where it was not seen in both stretches. */
  growthMb(name: string): number {
    const early = this.#early.get(name);
    const late = this.#late.get(name);
    return early === undefined || late === undefined ? 0 : late - early;
  }
}

function lower(floors: Map<string, number>, name: string, memoryMb: number): void {
  floors.set(name, Math.min(memoryMb, floors.get(name) ?? memoryMb));
}
