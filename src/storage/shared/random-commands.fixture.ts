// Makes random commands of every kind that fit what earlier ones have made, refused ones included.
import { crc32 } from "node:zlib";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import { etagOf } from "#storage/contract/inode.ts";
import type { CopyJob } from "#storage/metadata/copy-messages.ts";
import { isCopied } from "#storage/writer/copy-commands.ts";
import type { Command } from "#storage/writer/write-commands.ts";

export const OWNER = "ada@example.com";
const OTHER = "bob@example.com";

/** A step: a command of the owner's root, or a slice of the purge. */
export type Step = { readonly command: Command } | "purge";

/** Everything in an answer that later commands can name. */
interface Answer {
  readonly inode?: { id: number; kind: string; version: number };
  readonly item?: { id: string };
  readonly job?: CopyJob;
}

/** What has been made so far, gone or not: commands on what is gone are refused, which is compared too. */
export class RandomCommands {
  readonly #random: () => number;
  readonly #directories: number[];
  readonly #files: number[] = [];
  readonly #versions = new Map<number, number>();
  readonly #trash: string[] = [];
  readonly #uploads: { id: string; staged: number }[] = [];
  readonly #lists: number[] = [];
  readonly #tokens: string[] = [];
  readonly #links: { id: string; kind: "drop" | "read" }[] = [];
  #job: CopyJob | undefined;
  #last: Command | undefined;
  #count = 0;

  constructor(seed: number, directoryId: number) {
    let state = seed;
    this.#random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    this.#directories = [directoryId, directoryId, directoryId];
  }

  /** The next step. */
  next(): Step {
    this.#count++;
    const command = this.#job === undefined ? this.#any() : this.#copyOn(this.#job);
    if (command === "purge") return "purge";
    this.#last = command;
    return { command };
  }

  /** Learns from the answer to it. */
  learn(reply: unknown): void {
    const last = this.#last;
    if (last === undefined) return;
    if (typeof reply === "number" && last.op === "stageChunks") this.#lists.push(reply);
    if (typeof reply !== "object" || reply === null) return;
    const { inode, item, job } = reply as Answer;
    if (inode !== undefined) {
      this.#versions.set(inode.id, inode.version);
      const known = inode.kind === "directory" ? this.#directories : this.#files;
      if (!known.includes(inode.id)) known.push(inode.id);
    }
    if (item !== undefined) this.#trash.push(item.id);
    this.#job = job;
  }

  #copyOn(job: CopyJob): Command {
    const last = this.#last as Extract<Command, { op: "beginCopy" }>;
    this.#job = undefined;
    if (this.#random() < 0.1) return { op: "dropCopy", job };
    if (!isCopied(job)) return { op: "copySlice", ...this.#change(), job };
    const { sourceId, parentId, name, onConflict } = last;
    const limits = { maxBytes: 2 ** 40, maxInodes: 10_000 };
    return { op: "finishCopy", ...this.#change(), sourceId, parentId, name, onConflict, ...limits, job };
  }

  #any(): Command | "purge" {
    const makers = [
      this.#directory,
      this.#directory,
      this.#file,
      this.#file,
      this.#upload,
      this.#upload,
      this.#write,
      this.#rename,
      this.#rename,
      this.#remove,
      this.#trashOrRestore,
      this.#trashOrRestore,
      this.#share,
      this.#staged,
      this.#resumable,
      this.#copy,
      this.#damage,
      this.#lock,
      this.#link,
      this.#property,
      this.#property,
    ];
    if (this.#random() < 0.08) return "purge";
    return this.#pick(makers).call(this);
  }

  #directory(): Command {
    return { op: "createDirectory", ...this.#change(), ...this.#place() };
  }

  #file(): Command {
    const data = Buffer.alloc(Math.floor(this.#random() * 30), this.#count % 251);
    return { op: "createFile", ...this.#change(), ...this.#place(), data, mtimeMs: this.#count };
  }

  #upload(): Command {
    const onExists = this.#pick(["replace", "replace", "fail"] as const);
    const common = {
      op: "commitUpload",
      ...this.#change(),
      ...this.#place(),
      onExists,
      ifMatch: undefined,
    } as const;
    const chunks = this.#chunks(0, 1 + Math.floor(this.#random() * 4));
    const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0);
    const whole = { mtimeMs: 0, sizeBytes, crc32: this.#count };
    const kind = this.#random();
    const upload = this.#uploads[0];
    const list = this.#lists.pop();
    if (list !== undefined && kind < 0.5)
      return { ...common, ...whole, content: { contentId: list, chunks: [] } };
    if (upload !== undefined && kind < 0.4) {
      this.#uploads.shift();
      return { ...common, ...whole, content: { uploadId: upload.id, chunks: [] } };
    }
    if (kind < 0.6) return { ...common, ...whole, content: { contentId: undefined, chunks } };
    const inline = Buffer.alloc(Math.floor(this.#random() * 20), this.#count % 250);
    return { ...common, mtimeMs: 0, sizeBytes: inline.length, crc32: crc32(inline), content: { inline } };
  }

  #write(): Command {
    const fileId = this.#pickOr(this.#files);
    const change = { ...this.#change(), fileId };
    const expectedVersion = this.#versions.get(fileId) ?? 1;
    const kind = this.#random();
    if (kind < 0.4) {
      const data = Buffer.from(`written ${this.#count}`);
      return {
        op: "writeInline",
        ...change,
        offset: Math.floor(this.#random() * 9),
        data,
        ifMatch: undefined,
      };
    }
    const common = { ...change, expectedVersion, crc32: this.#count };
    const chunks = this.#chunks(Math.floor(this.#random() * 3), 1);
    if (kind < 0.7) return { op: "writeChunks", ...common, sizeBytes: 40, chunks };
    if (kind < 0.85)
      return { op: "truncate", ...common, sizeBytes: 12, content: { keptBelow: 1, chunks: [] } };
    const inline = Buffer.from("cut");
    return { op: "truncate", ...common, sizeBytes: 3, crc32: crc32(inline), content: { inline } };
  }

  #rename(): Command {
    const onConflict = this.#pick(["fail", "rename", "replace", "trash"] as const);
    const inodeId = this.#inode();
    const versions = {
      ifMatch: this.#expected(inodeId),
      targetIfMatch: this.#expected(this.#files.at(-1) ?? 0),
    };
    return { op: "rename", ...this.#change(), inodeId, ...this.#place(), onConflict, ...versions };
  }

  #remove(): Command {
    return { op: "remove", ...this.#change(), inodeId: this.#inode(), recursive: this.#random() < 0.6 };
  }

  #trashOf(inodeId: number): Command {
    return { op: "trash", ...this.#change(), inodeId, ifMatch: this.#expected(inodeId) };
  }

  /** The version that an inode has, or had before its last changes; mostly none. */
  #expected(id: number): string | undefined {
    const version = this.#versions.get(id);
    return version === undefined || this.#count % 6 !== 0 ? undefined : etagOf({ id, version });
  }

  #trashOrRestore(): Command {
    const kind = this.#random();
    const trashId = this.#pick(this.#trash);
    if (trashId === undefined || kind < 0.5) return this.#trashOf(this.#inode());
    if (kind < 0.65) return { op: "purgeTrash", owner: OWNER, trashIds: [trashId, this.#pick(this.#trash)] };
    const names = kind < 0.8 ? undefined : [this.#name(), this.#name(), this.#name()];
    const onConflict = this.#pick(["fail", "rename", "replace"] as const);
    return { op: "restore", ...this.#change(), trashId, names, onConflict };
  }

  #share(): Command {
    const op = this.#pick(["share", "share", "unshare"] as const);
    return { op, ...this.#change(OWNER), inodeId: this.#inode(), username: OTHER };
  }

  #staged(): Command {
    const list = this.#random() < 0.5 ? this.#lists.pop() : undefined;
    if (list !== undefined) return { op: "dropStaged", contentId: list };
    return { op: "stageChunks", owner: OWNER, contentId: undefined, chunks: this.#chunks(0, 2) };
  }

  #resumable(): Command {
    const upload = this.#uploads.at(-1);
    const kind = this.#random();
    const { nowMs } = this.#change();
    if (upload === undefined || kind < 0.3) {
      const uploadId = `upload ${this.#count}`;
      this.#uploads.push({ id: uploadId, staged: 0 });
      const wanted = {
        path: "/a",
        sizeBytes: 9e6,
        onExists: "replace",
        ifMatch: undefined,
        mtimeMs: 0,
      } as const;
      return { op: "createUpload", ...this.#change(), uploadId, ...wanted };
    }
    if (kind < 0.8) {
      const chunks = this.#chunks(upload.staged++, 1, 4_000_000);
      return { op: "stageUpload", uploadId: upload.id, chunks, nowMs };
    }
    this.#uploads.pop();
    return { op: "dropUpload", uploadId: upload.id };
  }

  #copy(): Command {
    const onConflict = this.#pick(["fail", "rename", "trash"] as const);
    const limits = { maxBytes: 2 ** 40, maxInodes: 10_000 };
    const change = this.#change(OWNER);
    const sourceId = this.#inode();
    const ifMatch = this.#expected(sourceId);
    return { op: "beginCopy", ...change, sourceId, ...this.#place(), onConflict, ifMatch, ...limits };
  }

  #damage(): Command {
    const { nowMs } = this.#change();
    const fileId = this.#pickOr(this.#files);
    const target =
      this.#random() < 0.5
        ? { fileId, version: this.#versions.get(fileId) ?? 1 }
        : { chunkId: 1 + Math.floor(this.#random() * 40) };
    return { op: "markDamaged", target, problem: "it was planted", nowMs };
  }

  #lock(): Command {
    const change = this.#change();
    const token = this.#pick(this.#tokens);
    const kind = this.#random();
    const expiresAtMs = change.nowMs + Math.floor(this.#random() * 60);
    if (token !== undefined && kind < 0.2)
      return { op: "refreshLock", owner: OWNER, token, expiresAtMs, nowMs: change.nowMs };
    if (token !== undefined && kind < 0.4) return { op: "unlock", owner: OWNER, token };
    const made = `urn:uuid:${this.#count}`;
    this.#tokens.push(made);
    const { by: username } = change;
    const who = { token: made, username, credential: "", note: "<D:owner/>", expiresAtMs };
    const [isExclusive, isDeep] = [this.#random() < 0.5, this.#random() < 0.3];
    return { op: "lock", ...change, inodeId: this.#inode(), ...who, isExclusive, isDeep };
  }

  #link(): Command {
    const change = this.#change(OWNER);
    const { nowMs } = change;
    const link = this.#pick(this.#links);
    const kind = this.#random();
    if (link === undefined || kind < 0.3) {
      const made = { id: `link ${this.#count}`, kind: this.#pick(["drop", "read"] as const) };
      this.#links.push(made);
      const limits = { endsMs: 0, maxDownloads: 3, maxBytes: 40, maxFiles: 2 };
      const secrets = { tokenHash: "ab", password: "", passKey: "cd" };
      return { op: "createLink", ...change, ...made, inodeId: this.#inode(), ...limits, ...secrets };
    }
    const order = { owner: OWNER, id: link.id };
    if (kind < 0.4) return { op: "revokeLink", ...order };
    if (link.kind === "read") {
      const visitor = this.#pick(["v", "w"]);
      const isWhole = this.#random() < 0.5;
      const requestKey = this.#pick(["", "r", "s"]);
      return { op: "countDownload", ...order, inodeId: this.#inode(), visitor, isWhole, requestKey, nowMs };
    }
    const bytes = Math.floor(this.#random() * 25);
    return kind < 0.8 ? { op: "claimDrop", ...order, bytes, nowMs } : { op: "returnDrop", ...order, bytes };
  }

  #property(): Command {
    const edits = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => ({
      kind: this.#pick(["set", "set", "remove"] as const),
      namespace: this.#pick(["DAV:", "urn:x"]),
      name: this.#pick(["a", "Ä", "c"]),
      xml: "x".repeat(Math.floor(this.#random() * 30)),
    }));
    return { op: "changeProperties", ...this.#change(), inodeId: this.#inode(), edits };
  }

  #chunks(from: number, count: number, length = 20): NewChunk[] {
    return Array.from({ length: count }, (_, at) => ({
      position: from + at,
      name: `chunk ${this.#count} ${at}`,
      length,
      crc32: this.#count,
      blockCrcs: new Uint8Array([this.#count % 256, at, 0, 255]),
    }));
  }

  #change(by?: string): { owner: string; accessVersion: undefined; by: string; nowMs: number } {
    const who = by ?? this.#pick([OWNER, OWNER, OWNER, OTHER]);
    return { owner: OWNER, accessVersion: undefined, by: who, nowMs: 1_790_000_000_000 + this.#count };
  }

  #place(): { parentId: number; name: string } {
    return { parentId: this.#pickOr(this.#directories), name: this.#name() };
  }

  #name(): string {
    return this.#pick(["a", "b", "c", "Ä", "d"]);
  }

  #inode(): number {
    return this.#random() < 0.5 ? this.#pickOr(this.#files) : this.#pickOr(this.#directories);
  }

  #pickOr(list: readonly number[]): number {
    return list.length === 0 ? 2 ** 32 + 77 : this.#pick(list);
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }
}
