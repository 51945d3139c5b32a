// Whether servers grow while they are attacked: their memory goes up and down, so what counts is where it comes down to.

/** Two stretches of a campaign, the first once the servers are warm, the second at the end: the least that each server held in them. */
export class MemoryFloors {
  readonly #warmFrom: number;
  readonly #stretch: number;
  readonly #goal: number;
  readonly #early = new Map<string, number>();
  readonly #late = new Map<string, number>();

  /** Counts in units of the campaign; of one that ends before its servers are warm nothing is told. */
  constructor(goal: number, warmFrom: number) {
    this.#goal = goal;
    this.#warmFrom = warmFrom;
    this.#stretch = Math.max(0, (goal - warmFrom) / 4);
  }

  /** Notes what a server holds now. */
  note(done: number, name: string, memoryMb: number): void {
    if (done >= this.#warmFrom && done < this.#warmFrom + this.#stretch) lower(this.#early, name, memoryMb);
    if (done >= this.#goal - this.#stretch && done >= this.#warmFrom) lower(this.#late, name, memoryMb);
  }

  /** By how many MB a server's floor has risen; 0 where it was not seen in both stretches. */
  growthMb(name: string): number {
    const early = this.#early.get(name);
    const late = this.#late.get(name);
    return early === undefined || late === undefined ? 0 : late - early;
  }
}

function lower(floors: Map<string, number>, name: string, memoryMb: number): void {
  floors.set(name, Math.min(memoryMb, floors.get(name) ?? memoryMb));
}
