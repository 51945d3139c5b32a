// One life of a root: calls one after the other, or a few at once, each compared with the model; and the
// search for a shorter case.

import type { RootCalls } from "./calls.ts";
import { expected } from "./expectations.ts";
import { FileModel } from "./file-model.ts";
import type { Operation } from "./operations.ts";
import type { Outcome } from "./outcome.ts";

/** Calls that are made at the same time; mostly one. */
export type Step = readonly Operation[];

/** With more states than this a root is given up: following only some of them could miss the true one. */
const STATES_MAX = 100;

/** A root that is compared with models: with several while the order of concurrent calls is unknown. */
export class Episode {
  readonly #calls: RootCalls;
  readonly #pool: Buffer;
  readonly #onCalls: (calls: number) => void;
  #models: FileModel[] = [new FileModel()];
  /** True when the root's state can no longer be known. */
  isLost = false;

  constructor(calls: RootCalls, pool: Buffer, onCalls: (calls: number) => void) {
    this.#calls = calls;
    this.#pool = pool;
    this.#onCalls = onCalls;
  }

  /** One of the states that the root may be in. */
  get model(): FileModel {
    return this.#models[0] ?? new FileModel();
  }

  /** Makes the calls of a step; returns what differs from every model, or undefined. */
  async take(step: Step): Promise<string | undefined> {
    const [only] = step;
    if (step.length === 1 && only !== undefined && this.#models.length === 1) return this.#one(only);
    const answers = await Promise.all(step.map((operation) => this.#answer(operation)));
    const states = new Map<string, FileModel>();
    for (const model of this.#models) this.#orders(model, step, answers, states);
    if (states.size === 0) {
      const said = step.map((each, at) => `${text(each)} -> ${text(answers[at])}`).join("\n  ");
      return `no order of these explains their answers:\n  ${said}`;
    }
    this.#models = [...states.values()];
    this.isLost = states.size > STATES_MAX;
    return undefined;
  }

  /** Compares everything that exists, with every byte. */
  async compareAll(): Promise<string | undefined> {
    const { model } = this;
    const looks: Operation[] = [
      { by: "owner", op: "showTrash" },
      { by: "owner", op: "getQuota" },
    ];
    for (const { path, isFolder } of placesOf(model)) {
      looks.push({ by: "owner", op: "getAttr", path });
      if (isFolder) looks.push({ by: "owner", op: "list", path, pageSize: 2, sort: 0 });
      else looks.push({ by: "owner", op: "download", path, offset: 0, length: 0 });
    }
    for (const look of looks) {
      if (this.isLost) return undefined;
      const difference = await this.take([look]);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }

  async #one(operation: Operation): Promise<string | undefined> {
    const { model } = this;
    const answer = await this.#answer(operation);
    const wanted = text(expected(model, operation, this.#pool, answer));
    if (wanted !== text(answer))
      return `${text(operation)}\n  answered ${text(answer)}\n  instead of ${wanted}`;
    // The kept content of a replaced file has an id that only a listing shows.
    if (model.trash.some(({ id }) => id === undefined)) return this.#one({ by: "owner", op: "showTrash" });
    return undefined;
  }

  #answer(operation: Operation): Promise<Outcome> {
    this.#onCalls(1);
    const { trash } = this.model;
    const idOf = (number: number): string => trash[number % Math.max(1, trash.length)]?.id ?? "none";
    if (operation.op === "restore") return this.#calls.make(operation, [idOf(operation.item)]);
    if (operation.op === "purge") return this.#calls.make(operation, operation.items.map(idOf));
    return this.#calls.make(operation, []);
  }

  /**
   * Returns every order in which the calls would have had these answers, with the states in which it ends.
   */
  #orders(model: FileModel, step: Step, answers: readonly Outcome[], states: Map<string, FileModel>): void {
    if (step.length === 0) {
      states.set(model.fingerprint(), model);
      return;
    }
    for (const [at, operation] of step.entries()) {
      const answer = answers[at];
      if (answer === undefined) continue;
      const next = model.clone();
      if (text(expected(next, operation, this.#pool, answer)) !== text(answer)) continue;
      this.#orders(next, step.toSpliced(at, 1), answers.toSpliced(at, 1), states);
    }
  }
}

function placesOf(model: FileModel): { path: string; isFolder: boolean }[] {
  const places: { path: string; isFolder: boolean }[] = [];
  const visit = (path: string): void => {
    const { last } = model.walk(path);
    places.push({ path, isFolder: last.children !== undefined });
    for (const name of last.children?.keys() ?? []) visit(`${path === "/" ? "" : path}/${name}`);
  };
  visit("/");
  return places;
}

const text = (value: unknown): string => JSON.stringify(value);

/**
 * Shortens a failing case, by halves first, then by less; the result fails too. `fails` repeats a case on a
 * fresh root; after `tries` of them the shortest so far is taken.
 */
export async function shrink(
  steps: readonly Step[],
  fails: (steps: readonly Step[]) => Promise<boolean>,
  tries: number,
): Promise<readonly Step[]> {
  let shortest = steps;
  let left = tries;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < shortest.length && left > 0; ) {
      const shorter = shortest.toSpliced(at, size);
      left--;
      if (shorter.length > 0 && (await fails(shorter))) shortest = shorter;
      else at += size;
    }
  }
  return shortest;
}
