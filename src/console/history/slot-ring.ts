// A ring of the newest rows, one per slot of time, as typed arrays; slots without a row read as NaN.

/** Rows of consecutive slots, as written to disk and read back. */
export interface Rows {
  readonly firstSlot: number;
  /** Column after column, all of one length. NaN is null. */
  readonly values: Float32Array<ArrayBuffer>;
}

/** The newest rows of one series. */
export class SlotRing {
  readonly columns: number;
  /** Maximum of rows. */
  readonly capacity: number;
  /** Rows for which memory is allocated; it grows with them. */
  #room: number;
  #values: Float32Array<ArrayBuffer>;
  #firstSlot = 0;
  #newestSlot = -1;
  #unsavedFrom = Number.POSITIVE_INFINITY;

  /** Allocates memory for all rows, or for `room` rows. */
  constructor(columns: number, capacity: number, room: number = capacity) {
    this.columns = columns;
    this.capacity = capacity;
    this.#room = Math.min(capacity, room);
    this.#values = new Float32Array(columns * this.#room).fill(Number.NaN);
  }

  get isEmpty(): boolean {
    return this.#newestSlot < this.#firstSlot;
  }

  /** The oldest slot that is kept. */
  get firstSlot(): number {
    return this.#firstSlot;
  }

  /** The newest slot with a row; below firstSlot without any. */
  get newestSlot(): number {
    return this.#newestSlot;
  }

  /** True when rows exist that takeUnsaved has not returned yet. */
  get hasUnsaved(): boolean {
    return this.#unsavedFrom <= this.#newestSlot;
  }

  /** A value; NaN without one. */
  at(column: number, slot: number): number {
    if (slot < this.#firstSlot || slot > this.#newestSlot) return Number.NaN;
    return this.#values[this.#place(column, slot)] ?? Number.NaN;
  }

  /** Copies the values of a column from a slot on, as many as the target holds; NaN for missing ones. */
  read(column: number, fromSlot: number, target: Float64Array): void {
    const base = column * this.#room;
    const { length } = target;
    let place = fromSlot % this.#room;
    for (let index = 0; index < length; index++) {
      const slot = fromSlot + index;
      const isKept = slot >= this.#firstSlot && slot <= this.#newestSlot;
      target[index] = isKept ? (this.#values[base + place] as number) : Number.NaN;
      place++;
      if (place === this.#room) place = 0;
    }
  }

  /**
   * Puts a row. Slots between the newest one and it become gaps. A row that is not newer replaces all rows
   * from its slot on: the clock went back, and rows of a time to come are wrong.
   */
  put(slot: number, row: ArrayLike<number>): void {
    this.#moveTo(slot);
    for (let column = 0; column < this.columns; column++) {
      this.#values[this.#place(column, slot)] = finite(row[column]);
    }
    this.#unsavedFrom = Math.min(this.#unsavedFrom, slot);
  }

  /** Puts rows that were read back; they count as saved. */
  restore(rows: Rows): void {
    const length = rows.values.length / this.columns;
    for (let index = Math.max(0, length - this.capacity); index < length; index++) {
      const slot = rows.firstSlot + index;
      this.#moveTo(slot);
      for (let column = 0; column < this.columns; column++) {
        this.#values[this.#place(column, slot)] = finite(rows.values[column * length + index]);
      }
    }
  }

  /** Removes the rows from a slot on. */
  cut(fromSlot: number): void {
    if (fromSlot > this.#newestSlot) return;
    const first = Math.max(fromSlot, this.#firstSlot);
    for (let slot = first; slot <= this.#newestSlot; slot++) this.#clear(slot);
    this.#newestSlot = first - 1;
  }

  /** A copy of all rows, which now count as saved; undefined without any. */
  takeAll(): Rows | undefined {
    this.#unsavedFrom = Number.POSITIVE_INFINITY;
    return this.isEmpty ? undefined : this.#copy(this.#firstSlot);
  }

  /** A copy of the rows that were not taken before; undefined without any. */
  takeUnsaved(): Rows | undefined {
    const from = Math.max(this.#unsavedFrom, this.#firstSlot);
    this.#unsavedFrom = Number.POSITIVE_INFINITY;
    return from > this.#newestSlot ? undefined : this.#copy(from);
  }

  #copy(firstSlot: number): Rows {
    const length = this.#newestSlot - firstSlot + 1;
    const values = new Float32Array(this.columns * length);
    const start = firstSlot % this.#room;
    const beforeWrap = Math.min(length, this.#room - start);
    for (let column = 0; column < this.columns; column++) {
      const base = column * this.#room;
      values.set(this.#values.subarray(base + start, base + start + beforeWrap), column * length);
      values.set(this.#values.subarray(base, base + length - beforeWrap), column * length + beforeWrap);
    }
    return { firstSlot, values };
  }

  /** Makes a slot the newest one. */
  #moveTo(slot: number): void {
    if (slot <= this.#newestSlot) this.cut(slot);
    if (this.isEmpty) this.#firstSlot = slot;
    this.#makeRoom(slot - this.#firstSlot + 1);
    for (let gap = Math.max(this.#newestSlot + 1, slot - this.capacity + 1); gap < slot; gap++) {
      if (gap >= this.#firstSlot) this.#clear(gap);
    }
    this.#newestSlot = slot;
    this.#firstSlot = Math.max(this.#firstSlot, slot - this.capacity + 1);
  }

  #makeRoom(rows: number): void {
    if (rows <= this.#room || this.#room === this.capacity) return;
    const kept = this.isEmpty ? undefined : this.#copy(this.#firstSlot);
    this.#room = Math.min(this.capacity, Math.max(rows, this.#room * 2));
    this.#values = new Float32Array(this.columns * this.#room).fill(Number.NaN);
    if (kept === undefined) return;
    const length = kept.values.length / this.columns;
    for (let index = 0; index < length; index++) {
      for (let column = 0; column < this.columns; column++) {
        this.#values[this.#place(column, kept.firstSlot + index)] = kept.values[
          column * length + index
        ] as number;
      }
    }
  }

  #place(column: number, slot: number): number {
    return column * this.#room + (slot % this.#room);
  }

  #clear(slot: number): void {
    for (let column = 0; column < this.columns; column++) {
      this.#values[this.#place(column, slot)] = Number.NaN;
    }
  }
}

function finite(value: number | undefined): number {
  const single = Math.fround(value ?? Number.NaN);
  return Number.isFinite(single) ? single : Number.NaN;
}
