// One client's folder: changed by one call after the other until the server dies, then compared with the
// acknowledgements.

import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Client } from "#wire/grpc/client.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { Content, ContentMaker } from "./content.ts";
import { bytesOf, difference, EMPTY_LANE, entryLine, isWithin, linesOf, trashLine } from "./lane-state.ts";
import { nextStep, type Step } from "./lane-steps.ts";

/** A user with a session on the current server. */
export interface SignedIn {
  readonly client: Client<typeof FileServer>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A lane's last call before its server was gone, and its error; no error where it was told to stop. */
export interface LaneEnd {
  readonly kind: string;
  readonly error: unknown;
}

/** One folder. Only this lane changes it, one call at a time. */
export class Lane {
  readonly folder: string;
  readonly user: string;
  readonly #random: SeededRandom;
  readonly #contents: ContentMaker;
  readonly #others: readonly string[];
  readonly #verified = new WeakSet<Content>();
  #state = EMPTY_LANE;
  #pending: Step | undefined;
  #names = 0;
  #isMade = false;
  #stagedBytes = 0n;
  /** Calls that were acknowledged. */
  acknowledged = 0;
  /** Bytes that were read back and compared. */
  readBytes = 0;

  constructor(deps: {
    folder: string;
    user: string;
    others: readonly string[];
    random: SeededRandom;
    contents: ContentMaker;
  }) {
    this.folder = deps.folder;
    this.user = deps.user;
    this.#others = deps.others;
    this.#random = deps.random;
    this.#contents = deps.contents;
  }

  /** Bytes that must be counted for this lane; after settle. */
  get bytes(): { live: bigint; trash: bigint; staging: bigint } {
    const { live, trash } = bytesOf(this.#state);
    return { live: BigInt(live), trash: BigInt(trash), staging: this.#stagedBytes };
  }

  /** Changes the folder until a call fails, or no further one is wanted. */
  async work(
    user: SignedIn,
    onAcknowledged: () => void,
    isWanted: () => boolean = () => true,
  ): Promise<LaneEnd> {
    const { folder } = this;
    const deps = {
      ...user,
      folder,
      random: this.#random,
      contents: this.#contents,
      others: this.#others,
      nextName: () => `n${this.#names++}`,
    };
    for (;;) {
      if (!isWanted()) return { kind: "stopped", error: undefined };
      const step = this.#isMade ? nextStep(deps, this.#state) : this.#firstStep(user);
      this.#pending = step;
      try {
        const completed = await step.run();
        this.#state = completed?.(step.after) ?? step.after;
      } catch (error) {
        return { kind: step.kind, error };
      }
      this.#pending = undefined;
      this.#isMade = true;
      this.acknowledged++;
      onAcknowledged();
    }
  }

  /** Compares with the server's state, and goes on from there. Returns the difference in words. */
  async settle(user: SignedIn): Promise<string | undefined> {
    const found = await this.#look(user);
    if (found === undefined) return this.#isMade ? `${this.folder} is gone` : undefined;
    this.#isMade = true;
    const before = difference(linesOf(this.#state), found);
    const pending = this.#pending;
    const after = pending === undefined ? before : difference(linesOf(pending.after), found);
    if (before !== undefined && after !== undefined)
      return `${this.folder}: ${before}; or with the last call, ${pending?.kind ?? "none"}: ${after}`;
    if (before !== undefined && pending !== undefined) this.#state = pending.after;
    this.#pending = undefined;
    return (await this.#adoptTrash(user)) ?? (await this.#settleUpload(user)) ?? this.#readChanged(user);
  }

  /** Reads every byte again; items of the trash are restored for it. */
  async readAll(user: SignedIn): Promise<string | undefined> {
    for (const item of this.#state.trash) {
      const targetPath = `${this.folder}/back${this.#names++}`;
      await user.client.restoreFile({ trashId: item.trashId, targetPath }, user);
      const tree = [...item.below].map(([path, entry]) => [`${targetPath}/${path}`, entry] as const);
      for (const [path, entry] of [[targetPath, item.entry] as const, ...tree]) {
        const wrong = entry === "folder" ? undefined : await this.#compare(user, path, entry);
        if (wrong !== undefined) return wrong;
      }
    }
    for (const [path, entry] of this.#state.tree) {
      const wrong =
        entry === "folder" ? undefined : await this.#compare(user, `${this.folder}/${path}`, entry);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  #firstStep({ client, metadata }: SignedIn): Step {
    const path = this.folder;
    const run = async (): Promise<void> => void (await client.createDirectory({ path }, { metadata }));
    return { kind: "mkdir", after: this.#state, run };
  }

  /**
   * The folder as sorted lines; undefined when it is missing. Each folder's size must be the sum of its
   * entries.
   */
  async #look(user: SignedIn): Promise<string[] | undefined> {
    const top = this.folder.slice(1);
    const { entries } = await user.client.listDir({ path: "/" }, user);
    if (!entries.some(({ name }) => name === top)) return undefined;
    const lines: string[] = [];
    const walk = async (path: string): Promise<bigint> => {
      let sum = 0n;
      for (const entry of (await user.client.listDir({ path }, user)).entries) {
        const isFolder = entry.kind === Kind.DIRECTORY;
        const size = isFolder ? await walk(entry.path) : entry.size;
        if (size !== entry.size) lines.push(`${entry.path} is counted as ${entry.size} and holds ${size}`);
        const what = isFolder ? "folder" : { size: Number(size), crc32: entry.crc32 };
        lines.push(entryLine(entry.path.slice(this.folder.length + 1), what, entry.shared));
        sum += size;
      }
      return sum;
    };
    await walk(this.folder);
    for (const item of await this.#trashItems(user))
      lines.push(trashLine(item.path, Number(item.size), Number(item.inodeCount)));
    return lines.sort();
  }

  async #trashItems(
    user: SignedIn,
  ): Promise<{ trashId: string; path: string; size: bigint; inodeCount: bigint }[]> {
    const { items } = await user.client.showTrash({}, user);
    return items
      .filter(({ originalPath }) => isWithin(originalPath, this.folder))
      .map(({ trashId, originalPath, size, inodeCount }) => ({
        trashId,
        size,
        inodeCount,
        path: originalPath.slice(this.folder.length + 1),
      }));
  }

  /** An item whose acknowledgement was lost has an id that only the server knows. */
  async #adoptTrash(user: SignedIn): Promise<string | undefined> {
    const { trash } = this.#state;
    if (trash.every(({ trashId }) => trashId !== "")) return undefined;
    const known = new Set(trash.map(({ trashId }) => trashId));
    const unknown = (await this.#trashItems(user)).filter(({ trashId }) => !known.has(trashId));
    const adopted = trash.map((item) =>
      item.trashId === ""
        ? { ...item, trashId: unknown.find(({ path }) => path === item.path)?.trashId ?? "" }
        : item,
    );
    this.#state = { ...this.#state, trash: adopted };
    return adopted.some(({ trashId }) => trashId === "")
      ? `${this.folder}: an item of the trash has no id`
      : undefined;
  }

  /** An upload that was begun is there until it has become a file. */
  async #settleUpload(user: SignedIn): Promise<string | undefined> {
    const { upload } = this.#state;
    this.#stagedBytes = 0n;
    if (upload === undefined) return undefined;
    try {
      const { offset } = await user.client.getUpload({ uploadId: upload.uploadId }, user);
      this.#stagedBytes = offset;
      return undefined;
    } catch (error) {
      return `${this.folder}: the upload of ${upload.path} that was begun: ${String(error)}`;
    }
  }

  /** Reads all content that is new since the last read, and one file more. */
  async #readChanged(user: SignedIn): Promise<string | undefined> {
    const files = [...this.#state.tree].flatMap(([path, entry]) =>
      entry === "folder" ? [] : [{ path, content: entry }],
    );
    const changed = files.filter(({ content }) => !this.#verified.has(content));
    const more = files.length === 0 ? [] : [this.#random.pick(files)];
    for (const { path, content } of [...changed, ...more]) {
      const wrong = await this.#compare(user, `${this.folder}/${path}`, content);
      if (wrong !== undefined) return wrong;
      this.#verified.add(content);
    }
    return undefined;
  }

  async #compare(user: SignedIn, path: string, { bytes }: Content): Promise<string | undefined> {
    let at = 0;
    try {
      for await (const { part } of user.client.downloadFile({ path }, user)) {
        if (part.case !== "chunk") continue;
        const { data } = part.value;
        if (bytes.compare(data, 0, data.length, at, at + data.length) !== 0)
          return `${path} has other bytes behind ${at}`;
        at += data.length;
      }
    } catch (error) {
      return `${path} cannot be read: ${String(error)}`;
    }
    this.readBytes += at;
    return at === bytes.length ? undefined : `${path} has ${at} bytes instead of ${bytes.length}`;
  }
}
