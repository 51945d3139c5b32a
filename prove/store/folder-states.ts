// States that each folder may have after a crash: the one acknowledged last, or that of the change under way.

interface Allowed {
  readonly acknowledged: string;
  readonly begun: string | undefined;
}

/** The states of a store's folders, kept outside of the crashing process. */
export class FolderStates {
  readonly #folders = new Map<string, Allowed>();
  #steps = 0;
  /** Changes acknowledged so far. */
  acknowledged = 0;

  /** Records a folder's first state. */
  know(folder: string, lines: string): void {
    this.#folders.set(folder, { acknowledged: lines, begun: undefined });
  }

  /** Identifies the allowed states; another one after each step. */
  get key(): string {
    return String(this.#steps);
  }

  begin(folder: string, lines: string): void {
    this.#steps++;
    this.#folders.set(folder, { acknowledged: this.#folders.get(folder)?.acknowledged ?? "", begun: lines });
  }

  done(folder: string): void {
    const begun = this.#folders.get(folder)?.begun;
    if (begun === undefined) return;
    this.#steps++;
    this.#folders.set(folder, { acknowledged: begun, begun: undefined });
    this.acknowledged++;
  }

  /** Returns the found folders that are in neither state. A folder without a record may hold anything. */
  compare(found: ReadonlyMap<string, string>): string[] {
    const problems: string[] = [];
    for (const [folder, { acknowledged, begun }] of this.#folders) {
      const lines = found.get(folder) ?? "";
      if (lines !== acknowledged && lines !== begun)
        problems.push(difference(folder, acknowledged, lines, begun));
    }
    return problems;
  }

  /** The same; from now on the found state is the expected one. */
  settle(found: ReadonlyMap<string, string>): string[] {
    const problems = this.compare(found);
    this.#folders.clear();
    for (const [folder, lines] of found) this.know(folder, lines);
    return problems;
  }
}

function difference(folder: string, acknowledged: string, found: string, begun: string | undefined): string {
  const wanted = new Set(acknowledged.split("\n"));
  const present = new Set(found.split("\n"));
  const lost = [...wanted].filter((line) => !present.has(line));
  const strange = [...present].filter((line) => !wanted.has(line));
  const next = begun === undefined ? "nothing was under way" : `under way was ${JSON.stringify(begun)}`;
  return `/${folder}: acknowledged and not there ${JSON.stringify(lost)}; there and not acknowledged ${JSON.stringify(strange)}; ${next}`;
}
