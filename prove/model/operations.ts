// Operations on a root as plain data with paths, never ids, so that a fresh root can repeat them.
import type { SeededRandom } from "#prove/seeded-random.ts";
import { type By, type FileModel, pathOf } from "./file-model.ts";

/** The action when a target exists. */
export type Conflict = "fail" | "rename" | "replace";
/** Bytes cut from the rig's pool. */
export interface Cut {
  readonly from: number;
  readonly length: number;
}

/** One call. */
export type Operation = { readonly by: By } & (
  | { readonly op: "createDirectory" | "trash"; readonly path: string }
  | { readonly op: "getAttr" | "changeDir"; readonly path: string }
  | { readonly op: "createFile"; readonly path: string; readonly data: Cut }
  | {
      readonly op: "upload";
      readonly path: string;
      readonly data: Cut;
      readonly sizeKnown: boolean;
      readonly mayReplace: boolean;
    }
  | { readonly op: "write"; readonly path: string; readonly offset: number; readonly data: Cut }
  | { readonly op: "truncate"; readonly path: string; readonly size: number }
  | {
      readonly op: "rename" | "copy";
      readonly path: string;
      readonly target: string;
      readonly onConflict: Conflict;
    }
  | { readonly op: "delete"; readonly path: string; readonly recursive: boolean }
  | { readonly op: "restore"; readonly item: number; readonly target: string; readonly onConflict: Conflict }
  | { readonly op: "purge"; readonly items: readonly number[] }
  | { readonly op: "share" | "unshare"; readonly path: string; readonly user: By }
  | { readonly op: "list"; readonly path: string; readonly pageSize: number; readonly sort: 0 | 1 | 2 | 3 }
  | {
      readonly op: "read" | "download";
      readonly path: string;
      readonly offset: number;
      readonly length: number;
    }
  | { readonly op: "showTrash" | "getQuota" }
  | { readonly op: "setQuota"; readonly bytes: number }
);

/** Bytes of the pool that contents are cut from: one chunk and a little more. */
export const POOL_BYTES = 4_100_000;
const NAMES = ["a", "b", "c.txt", "d", "é.tar.gz", "f"];
const INLINE_MAX_BYTES = 65_536;
const CHUNK_BYTES = 4_000_000;
/** Above this a root is emptied rather than filled. */
const NODES_MAX = 28;
const DEPTH_MAX = 4;

/** Calls that change nothing, those of one step, and those of content, weighted by frequency. */
const READS = [
  "getAttr",
  "getAttr",
  "list",
  "list",
  "read",
  "download",
  "changeDir",
  "showTrash",
  "getQuota",
];
const CHANGES = [
  ["createDirectory", 5],
  ["createFile", 8],
  ["upload", 6],
  ["write", 6],
  ["truncate", 3],
  ["rename", 8],
  ["copy", 5],
  ["delete", 5],
  ["trash", 5],
  ["restore", 5],
  ["purge", 2],
  ["share", 3],
  ["unshare", 2],
  ["setQuota", 1],
] as const;
const CHANGE_KINDS = CHANGES.flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind));
/** Concurrent calls of several clients of one root. A copy of a tree is no single step. */
const TOGETHER = [
  "createDirectory",
  "createFile",
  "upload",
  "write",
  "truncate",
  "rename",
  "rename",
  "delete",
  "trash",
  "getAttr",
  "read",
] as const;

/** Draws operations that mostly name existing entries. */
export class Draws {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Draws one call for a root without other callers. */
  next(model: FileModel): Operation {
    const random = this.#random;
    if (model.nodes().length > NODES_MAX && random.chance(0.5))
      return { by: "owner", op: "delete", path: this.#present(model), recursive: true };
    const kind = random.chance(0.45) ? random.pick(READS) : random.pick(CHANGE_KINDS);
    const draw = random.below(10);
    const by = draw < 8 ? "owner" : draw === 8 ? "sharee0" : "sharee1";
    return this.#make(kind, by, model);
  }

  /** Draws a few concurrent calls, all by the owner. */
  together(model: FileModel, count: number): Operation[] {
    return Array.from({ length: count }, () => this.#make(this.#random.pick(TOGETHER), "owner", model));
  }

  #make(kind: string, by: By, model: FileModel): Operation {
    const random = this.#random;
    const path = random.chance(0.85) ? this.#present(model) : this.#place(model);
    switch (kind) {
      case "createDirectory":
        return { by, op: kind, path: this.#place(model) };
      case "createFile":
        return { by, op: kind, path: this.#place(model), data: this.#cut(INLINE_MAX_BYTES) };
      case "upload": {
        const data = this.#cut(POOL_BYTES);
        const target = random.chance(0.5) ? this.#file(model) : this.#place(model);
        return {
          by,
          op: kind,
          path: target,
          data,
          sizeKnown: random.chance(0.5),
          mayReplace: random.chance(0.8),
        };
      }
      case "write":
        return { by, op: kind, path: this.#file(model), offset: this.#offset(), data: this.#cut(100_000) };
      case "truncate":
        return { by, op: kind, path: this.#file(model), size: this.#offset() };
      case "rename":
      case "copy":
        return { by, op: kind, path, target: this.#place(model), onConflict: this.#conflict() };
      case "delete":
        return { by, op: kind, path, recursive: random.chance(0.4) };
      case "restore": {
        const target = random.chance(0.6) ? "" : this.#place(model);
        return { by, op: kind, item: random.below(50), target, onConflict: this.#conflict() };
      }
      case "purge":
        return { by, op: kind, items: random.chance(0.2) ? [] : [random.below(50), random.below(50)] };
      case "share":
      case "unshare":
        return { by, op: kind, path, user: random.pick(["sharee0", "sharee1", "owner", "sharee0"] as const) };
      case "list":
        return {
          by,
          op: kind,
          path: this.#directory(model),
          pageSize: random.between(1, 6),
          sort: random.pick([0, 1, 2, 3] as const),
        };
      case "read":
      case "download": {
        const length = random.chance(0.5) ? 0 : random.between(1, 5_000);
        return {
          by,
          op: kind,
          path: this.#file(model),
          offset: random.chance(0.6) ? 0 : this.#offset(),
          length,
        };
      }
      case "showTrash":
      case "getQuota":
        return { by, op: kind };
      case "setQuota":
        return { by, op: kind, bytes: this.#quota(model) };
      default:
        return { by, op: kind as "trash" | "getAttr" | "changeDir", path };
    }
  }

  #conflict(): Conflict {
    return this.#random.pick(["fail", "rename", "replace", "replace"]);
  }

  /** Near the bytes used, so that refusals come; often enough far above. */
  #quota(model: FileModel): number {
    if (this.#random.chance(0.5)) return 2 ** 34;
    return Math.max(1, model.usedBytes() + this.#random.between(-2_000, 20_000));
  }

  #cut(most: number): Cut {
    const random = this.#random;
    const edges = [
      0,
      1,
      INLINE_MAX_BYTES - 1,
      INLINE_MAX_BYTES,
      INLINE_MAX_BYTES + 1,
      CHUNK_BYTES,
      CHUNK_BYTES + 1,
    ];
    const draw = random.below(1_000);
    const wanted =
      draw < 30 ? random.pick(edges.slice(0, 5)) : draw < 33 ? random.pick(edges) : random.below(3_000);
    const length = Math.min(wanted, most);
    return { from: random.below(POOL_BYTES - length + 1), length };
  }

  #offset(): number {
    const draw = this.#random.below(1_000);
    if (draw < 20) return this.#random.between(INLINE_MAX_BYTES - 2, INLINE_MAX_BYTES + 2);
    if (draw < 22) return this.#random.between(CHUNK_BYTES - 2, CHUNK_BYTES + 2);
    return this.#random.below(4_000);
  }

  #present(model: FileModel): string {
    return pathOf(this.#random.pick(model.nodes()));
  }

  #file(model: FileModel): string {
    const files = model.nodes().filter(({ children }) => children === undefined);
    return files.length === 0 || this.#random.chance(0.1)
      ? this.#present(model)
      : pathOf(this.#random.pick(files));
  }

  #directory(model: FileModel): string {
    const directories = model.nodes().filter(({ children }) => children !== undefined);
    return this.#random.chance(0.1) ? this.#present(model) : pathOf(this.#random.pick(directories));
  }

  /** A name in some directory, existing or not; now and then below a file or in a missing folder. */
  #place(model: FileModel): string {
    const name = this.#random.pick(NAMES);
    const parent = this.#random.chance(0.93) ? this.#directory(model) : `${this.#present(model)}/zz`;
    const path = `${parent === "/" ? "" : parent}/${name}`.replace("//", "/");
    return path.split("/").length > DEPTH_MAX + 2 ? `/${name}` : path;
  }
}
