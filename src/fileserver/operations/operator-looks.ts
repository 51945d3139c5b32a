// Keeps what administrators saw of users' trashes and restored from them, so that each user is shown it.
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { setAside } from "#os/set-aside.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";

/** Looks of administrators kept for each user and shown to them. */
export const OPERATOR_LOOKS_PER_USER = 20;
/** Looks kept for all users of a node together. */
const OPERATOR_LOOKS_KEPT = 20_000;

const look = z.strictObject({
  owner: z.string(),
  at_ms: z.number(),
  by: z.string(),
  reason: z.string(),
  restored_path: z.string(),
});

const looksFile = z.strictObject({
  schema: z.literal(1),
  looks: z.array(look).max(OPERATOR_LOOKS_KEPT),
});

/** One look in its stored form. */
export type StoredLook = z.infer<typeof look>;

/** Pages that an administrator reads within this time are one look. */
const ONE_LOOK_MS = 600_000;
const FILE = "operator_looks.json";

/** The looks of a node's data folder, the oldest first. */
export class OperatorLooks {
  readonly #path: string;
  readonly #clock: Pick<Clock, "wallMs">;
  #looks: readonly StoredLook[];
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, clock: Pick<Clock, "wallMs">, looks: readonly StoredLook[]) {
    this.#path = path;
    this.#clock = clock;
    this.#looks = looks;
  }

  /**
   * Opens or creates the file. A damaged one is set aside for its previous generation. Throws BAD_ARGUMENT
   * for a newer version.
   */
  static async open(
    dataFolder: string,
    deps: { readonly clock: Clock; readonly log: Logger },
  ): Promise<OperatorLooks> {
    const path = join(dataFolder, FILE);
    const { content, current } = await readGenerations(path, (one) => readStateFile(one, looksFile));
    if (current === "broken") await setAside(path, deps);
    return new OperatorLooks(path, deps.clock, content?.looks ?? []);
  }

  /** Stores a look, several pages as one; resolves on stable storage. A user's oldest look gives way. */
  async add(seen: Omit<StoredLook, "at_ms">): Promise<void> {
    if (this.#isTheSame(seen)) {
      // What the disk did not take then is tried again.
      this.#saving = this.#saving.catch(() => this.#save());
      return await this.#saving;
    }
    const looks = [...this.#looks, { ...seen, at_ms: this.#clock.wallMs() }];
    const ofOwner = looks.filter(({ owner }) => owner === seen.owner);
    const tooMany = new Set(ofOwner.slice(0, Math.max(0, ofOwner.length - OPERATOR_LOOKS_PER_USER)));
    this.#looks = looks.filter((one) => !tooMany.has(one)).slice(-OPERATOR_LOOKS_KEPT);
    const saved = this.#saving.catch(() => {}).then(() => this.#save());
    this.#saving = saved;
    await saved;
  }

  /**
   * Drops what concerned a user up to a moment: whoever has the address next is somebody else. Resolves when
   * that is on stable storage.
   */
  async forget(owner: string, untilMs: number): Promise<void> {
    const kept = this.#looks.filter((one) => one.owner !== owner || one.at_ms > untilMs);
    if (kept.length === this.#looks.length) return;
    this.#looks = kept;
    const saved = this.#saving.catch(() => {}).then(() => this.#save());
    this.#saving = saved;
    await saved;
  }

  /** Shows a person's looks under their new name. Resolves when that is on stable storage. */
  async rename(from: string, to: string): Promise<void> {
    if (!this.#looks.some(({ owner }) => owner === from)) return;
    this.#looks = this.#looks.map((one) => (one.owner === from ? { ...one, owner: to } : one));
    const saved = this.#saving.catch(() => {}).then(() => this.#save());
    this.#saving = saved;
    await saved;
  }

  /** Adds looks that came along with a user's root, if they are sound and not here yet. */
  async take(owner: string, moved: unknown): Promise<void> {
    const { data } = z.array(look).max(OPERATOR_LOOKS_PER_USER).safeParse(moved);
    const here = this.#looks.filter((one) => one.owner === owner);
    const isHere = (at_ms: number): boolean => here.some((one) => one.at_ms === at_ms);
    const come = (data ?? []).filter((one) => one.owner === owner && !isHere(one.at_ms));
    if (come.length === 0) return;
    const oldestFirst = (a: StoredLook, b: StoredLook): number => a.at_ms - b.at_ms;
    const ofOwner = [...here, ...come].toSorted(oldestFirst).slice(-OPERATOR_LOOKS_PER_USER);
    const others = this.#looks.filter((one) => one.owner !== owner);
    this.#looks = [...others, ...ofOwner].toSorted(oldestFirst).slice(-OPERATOR_LOOKS_KEPT);
    const saved = this.#saving.catch(() => {}).then(() => this.#save());
    this.#saving = saved;
    await saved;
  }

  /** The looks at one user's trash, the newest first. */
  of(owner: string): StoredLook[] {
    return this.#looks.filter((one) => one.owner === owner).toReversed();
  }

  /** True when the last look at that user's trash was this one, a moment ago. */
  #isTheSame({ owner, by, reason, restored_path }: Omit<StoredLook, "at_ms">): boolean {
    const last = this.#looks.findLast((one) => one.owner === owner);
    if (last === undefined || this.#clock.wallMs() - last.at_ms > ONE_LOOK_MS) return false;
    return last.by === by && last.reason === reason && last.restored_path === restored_path;
  }

  async #save(): Promise<void> {
    const content = `${JSON.stringify({ schema: 1, looks: this.#looks })}\n`;
    await writeFileAtomic(this.#path, content, { keepPrevious: true });
  }
}
