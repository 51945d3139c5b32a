// One root that many streams fill and empty at once, and the rig's own account of its content.
import { setTimeout as pause } from "node:timers/promises";
import { crc32 } from "#os/crc32.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { answerOf, type SignedIn } from "#prove/served-node.ts";
import { ABORTS, ResetConnections, runUpload, type UploadPlan } from "./uploads.ts";

const INLINE_MAX_BYTES = 65_536;
const PAGE = 1_000;
/** How long and how often the product's client tries again what a server has no time for. */
const PATIENCE_MS = 60_000;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [200, 5_000];

/** Result of a step. */
export interface Step {
  readonly what: string;
  readonly answer: string;
  /** Bytes that it adds by a new file; undefined where it may also free some. */
  readonly addsBytes: number | undefined;
}

/** Whether some of the steps free space. */
export type Steps = "with removals" | "only growing";

/** The root; every step works on files of its own, so that the account is exact in any order of steps. */
export class Account {
  readonly root: string;
  /** The owner, or the members of the group. */
  readonly #keepers: readonly SignedIn[];
  readonly #sharee: SignedIn;
  readonly #resets: ResetConnections;
  readonly #campaign: Campaign;
  readonly #random: SeededRandom;
  readonly #pool: Buffer;
  readonly #files = new Map<string, number>();
  readonly #busy = new Set<string>();
  #trashBytes = 0;
  #made = 0;

  constructor(
    users: { root: string; keepers: readonly SignedIn[]; sharee: SignedIn },
    address: string,
    campaign: Campaign,
    pool: Buffer,
  ) {
    this.root = users.root;
    this.#keepers = users.keepers;
    this.#sharee = users.sharee;
    this.#resets = new ResetConnections(address);
    campaign.atEnd(() => this.#resets.close());
    this.#campaign = campaign;
    this.#random = campaign.random.fork(users.root);
    this.#pool = pool;
  }

  /** The owner, or one of the members. */
  get #keeper(): SignedIn {
    return this.#random.pick(this.#keepers);
  }

  get liveBytes(): number {
    return [...this.#files.values()].reduce((sum, size) => sum + size, 0);
  }

  get usedBytes(): number {
    return this.liveBytes + this.#trashBytes;
  }

  /** Shares the whole root, so that the sharee's writes count here. */
  async share(): Promise<void> {
    const { root } = this;
    const [first] = this.#keepers;
    await first?.calls.share({ root, path: "/", user: this.#sharee.email }, first);
  }

  /** One random step. */
  async step(steps: Steps): Promise<Step> {
    const draw = this.#random.below(100);
    if (draw < 65) return this.#abortedUpload();
    if (draw < 82) return this.#upload(this.#newPath(), this.#keeper, draw < 74);
    if (draw < 86) return this.#createFile();
    const path = this.#takeFile();
    if (path === undefined) return this.#upload(this.#newPath(), this.#keeper, true);
    try {
      // The owner's overwriting removes the old content, so that it may also free something.
      const isBySharee = draw >= 88 || steps === "only growing";
      if (draw < 90)
        return await this.#upload(path, isBySharee ? this.#sharee : this.#keeper, draw % 2 === 0);
      if (draw < 93) return await this.#copy(path);
      if (draw < 95 || steps === "only growing") return await this.#append(path);
      return await this.#remove(path, draw < 98);
    } finally {
      this.#busy.delete(path);
    }
  }

  /** Uploads this many bytes to a new path. */
  uploadBytes(bytes: number, sizeKnown: boolean): Promise<Step> {
    return this.#upload(this.#newPath(), this.#keeper, sizeKnown, this.#pool.subarray(0, bytes));
  }

  /** Creates an empty file, which needs no byte but a root below its quota. */
  createEmpty(): Promise<string> {
    const keeper = this.#keeper;
    return answerOf(keeper.calls.createFile({ root: this.root, path: this.#newPath() }, keeper));
  }

  createFolder(): Promise<string> {
    const keeper = this.#keeper;
    return answerOf(keeper.calls.createDirectory({ root: this.root, path: this.#newPath() }, keeper));
  }

  /** Returns the differences between the root and the account; empty when there are none. */
  async differences(): Promise<string[]> {
    const there = new Map<string, number>();
    const [root, keeper] = [this.root, this.#keeper];
    for (let pageToken = ""; ; ) {
      const page = await keeper.calls.listDir({ root, path: "/", pageSize: PAGE, pageToken }, keeper);
      for (const { path, size } of page.entries) there.set(path, Number(size));
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    const wrong: string[] = [];
    for (const path of new Set([...there.keys(), ...this.#files.keys()])) {
      const [is, expected] = [there.get(path), this.#files.get(path)];
      if (is !== expected) wrong.push(`${path} has ${is ?? "no"} bytes instead of ${expected ?? "none"}`);
    }
    const { liveBytes, trashBytes, stagingBytes } = await keeper.calls.getQuota({ root }, keeper);
    const said = `${liveBytes} live, ${trashBytes} in the trash, ${stagingBytes} staged`;
    const booked = `${this.liveBytes} live, ${this.#trashBytes} in the trash, 0 staged`;
    if (said !== booked) wrong.push(`the server says ${said}; the books say ${booked}`);
    return wrong;
  }

  /** Removes everything for good. */
  async empty(): Promise<void> {
    const [root, keeper] = [this.root, this.#keeper];
    await Promise.all([...this.#files.keys()].map((path) => keeper.calls.deleteFile({ root, path }, keeper)));
    await keeper.calls.purgeTrash({ root }, keeper);
    this.#files.clear();
    this.#trashBytes = 0;
  }

  async #abortedUpload(): Promise<Step> {
    const isOver = this.#random.chance(0.2);
    const taken = isOver ? this.#takeFile() : undefined;
    const bytes = this.#content();
    const how = this.#random.pick(ABORTS);
    const sizeKnown = this.#random.chance(0.6);
    const atByte = this.#random.below(bytes.length);
    const path = taken ?? this.#newPath();
    const plan: UploadPlan = { root: this.root, path, bytes, sizeKnown, abort: { how, atByte } };
    const user = this.#random.chance(0.2) ? this.#sharee : this.#keeper;
    const answer = await runUpload(user, this.#resets, plan, this.#random);
    if (taken !== undefined) this.#busy.delete(taken);
    this.#campaign.step();
    return { what: `an upload that was ${how} at byte ${atByte}`, answer, addsBytes: undefined };
  }

  async #upload(path: string, user: SignedIn, sizeKnown: boolean, content?: Buffer): Promise<Step> {
    const bytes = content ?? this.#content();
    const plan: UploadPlan = { root: this.root, path, bytes, sizeKnown, abort: undefined };
    const answer = await this.#patiently(() => runUpload(user, this.#resets, plan, this.#random));
    const before = this.#files.get(path);
    if (answer === "ok") {
      // Content that another than the owner replaces is kept, and the root pays for both.
      if (user.email !== this.root) this.#trashBytes += before ?? 0;
      this.#files.set(path, bytes.length);
      this.#campaign.count("uploaded bytes", bytes.length);
    }
    return { what: "an upload", answer, addsBytes: before === undefined ? bytes.length : undefined };
  }

  async #createFile(): Promise<Step> {
    const path = this.#newPath();
    const bytes = this.#content().subarray(0, INLINE_MAX_BYTES);
    const [root, keeper] = [this.root, this.#keeper];
    const request = { root, path, data: bytes, crc32: crc32(bytes) };
    const answer = await this.#patiently(() => answerOf(keeper.calls.createFile(request, keeper)));
    if (answer === "ok") this.#files.set(path, bytes.length);
    return { what: "a new small file", answer, addsBytes: bytes.length };
  }

  async #copy(path: string): Promise<Step> {
    const targetPath = this.#newPath();
    const addsBytes = this.#files.get(path) ?? 0;
    const [root, keeper] = [this.root, this.#keeper];
    const answer = await this.#patiently(() =>
      answerOf(keeper.calls.copy({ root, path, targetPath }, keeper)),
    );
    if (answer === "ok") this.#files.set(targetPath, addsBytes);
    return { what: "a copy", answer, addsBytes };
  }

  async #append(path: string): Promise<Step> {
    const offset = this.#files.get(path) ?? 0;
    const data = this.#content().subarray(0, 100_000);
    const [root, keeper] = [this.root, this.#keeper];
    const request = { root, path, offset: BigInt(offset), data };
    const answer = await this.#patiently(() => answerOf(keeper.calls.writeFile(request, keeper)));
    if (answer === "ok") this.#files.set(path, offset + data.length);
    return { what: "an appending write", answer, addsBytes: data.length };
  }

  async #remove(path: string, toTrash: boolean): Promise<Step> {
    const bytes = this.#files.get(path) ?? 0;
    const [root, keeper] = [this.root, this.#keeper];
    const { calls } = keeper;
    const answer = await this.#patiently(() =>
      answerOf(toTrash ? calls.trashFile({ root, path }, keeper) : calls.deleteFile({ root, path }, keeper)),
    );
    if (answer === "ok") {
      this.#files.delete(path);
      if (toTrash) this.#trashBytes += bytes;
    }
    return { what: "a removal", answer, addsBytes: undefined };
  }

  /**
   * Asks again while the server refuses for load, as the product's client does: a member's right is checked anew
   * after each removal by another member, and one whom that holds up comes again.
   */
  async #patiently(ask: () => Promise<string>): Promise<string> {
    const untilMs = performance.now() + PATIENCE_MS;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      const answer = await ask();
      if (answer !== "OVERLOADED" || performance.now() + wait > untilMs) return answer;
      this.#campaign.count("calls that came again");
      await pause(wait);
    }
  }

  /** Small ones mostly; some of more than a chunk. */
  #content(): Buffer {
    const draw = this.#random.below(100);
    const most = draw < 50 ? 2_000 : draw < 85 ? 70_000 : draw < 98 ? 300_000 : 5_000_000;
    const length = this.#random.between(1, most);
    const from = this.#random.below(this.#pool.length - length + 1);
    return this.#pool.subarray(from, from + length);
  }

  #newPath(): string {
    return `/f${this.#made++}`;
  }

  /** Takes a file that no other step works on. */
  #takeFile(): string | undefined {
    const free = [...this.#files.keys()].filter((path) => !this.#busy.has(path));
    if (free.length === 0) return undefined;
    const path = this.#random.pick(free);
    this.#busy.add(path);
    return path;
  }
}
