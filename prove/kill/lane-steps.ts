// The kinds of changes that a lane makes: each one call, with the state that its acknowledgement promises.

import type { SeededRandom } from "#prove/seeded-random.ts";
import { type Client, createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Content, type ContentMaker, contentOf } from "./content.ts";
import { below, isWithin, type LaneState, renamed, withEntry, without, withTree } from "./lane-state.ts";

/** A change: the state after it, and the call; the call's answer may complete that state. */
export interface Step {
  readonly kind: string;
  readonly after: LaneState;
  readonly run: () => Promise<((after: LaneState) => LaneState) | void>;
}

/** Parts of steps. */
export interface StepDeps {
  readonly client: Client<typeof FileServer>;
  readonly metadata: Readonly<Record<string, string>>;
  /** Absolute path of the lane's folder. */
  readonly folder: string;
  readonly random: SeededRandom;
  readonly contents: ContentMaker;
  /** Users to share with. */
  readonly others: readonly string[];
  readonly nextName: () => string;
}

type Kind = readonly [weight: number, make: (deps: StepDeps, state: LaneState) => Step | undefined];

const FILES_MAX = 30;
const TRASH_MAX = 8;
const INLINE_MAX_BYTES = 65_536;
const MESSAGE_BYTES = 1_000_000;
const CHUNK_BYTES = 4_000_000;
const WRITE_MAX_BYTES = 100_000;

/** A client of the service on a channel. */
export const fileServerClient = (channel: GrpcChannel): Client<typeof FileServer> =>
  createClient(FileServer, channel);

/** The next change of a lane. */
export function nextStep(deps: StepDeps, state: LaneState): Step {
  const total = KINDS.reduce((sum, [weight]) => sum + weight, 0);
  for (;;) {
    let at = deps.random.below(total);
    const [, make] = KINDS.find(([weight]) => (at -= weight) < 0) ?? [];
    const step = make?.(deps, state);
    if (step !== undefined) return step;
  }
}

const at = (deps: StepDeps, path: string): string => `${deps.folder}/${path}`;
const paths = (state: LaneState, kind: "file" | "folder"): string[] =>
  [...state.tree].flatMap(([path, entry]) => ((entry === "folder") === (kind === "folder") ? [path] : []));

function pick(deps: StepDeps, from: readonly string[]): string | undefined {
  return from.length === 0 ? undefined : deps.random.pick(from);
}

/** Returns an unused path, at the top or in an existing folder. */
function freshPath(deps: StepDeps, state: LaneState): string {
  const folder = deps.random.chance(0.4) ? pick(deps, paths(state, "folder")) : undefined;
  return folder === undefined ? deps.nextName() : `${folder}/${deps.nextName()}`;
}

/** Mostly small, at times in one chunk file, now and then in several. */
function someContent({ random, contents }: StepDeps): Content {
  const kind = random.below(40);
  if (kind < 28) return contents.make(random.below(20_000));
  if (kind < 39) return contents.make(60_000 + random.below(300_000));
  return contents.make(CHUNK_BYTES - 5 + random.below(CHUNK_BYTES / 2));
}

const hasRoom = (state: LaneState): boolean => paths(state, "file").length < FILES_MAX;

function create(deps: StepDeps, state: LaneState): Step | undefined {
  if (!hasRoom(state)) return undefined;
  const path = freshPath(deps, state);
  const content = someContent(deps);
  const after = withEntry(state, path, content);
  if (content.bytes.length <= INLINE_MAX_BYTES && deps.random.chance(0.4)) {
    const request = { path: at(deps, path), data: content.bytes };
    return { kind: "create", after, run: async () => void (await deps.client.createFile(request, deps)) };
  }
  return { kind: "upload", after, run: () => upload(deps, { path, content }) };
}

function overwrite(deps: StepDeps, state: LaneState): Step | undefined {
  const path = pick(deps, paths(state, "file"));
  if (path === undefined) return undefined;
  const content = someContent(deps);
  return {
    kind: "overwrite",
    after: withEntry(state, path, content),
    run: () => upload(deps, { path, content }),
  };
}

function write(deps: StepDeps, state: LaneState): Step | undefined {
  const path = pick(deps, paths(state, "file"));
  const old = path === undefined ? undefined : state.tree.get(path);
  if (path === undefined || old === undefined || old === "folder") return undefined;
  const offset = deps.random.below(old.bytes.length + 1);
  const { bytes: data } = deps.contents.make(1 + deps.random.below(WRITE_MAX_BYTES));
  const bytes = Buffer.alloc(Math.max(old.bytes.length, offset + data.length));
  bytes.set(old.bytes);
  bytes.set(data, offset);
  const request = { path: at(deps, path), offset: BigInt(offset), data };
  const after = withEntry(state, path, contentOf(bytes));
  return { kind: "write", after, run: async () => void (await deps.client.writeFile(request, deps)) };
}

function truncate(deps: StepDeps, state: LaneState): Step | undefined {
  const path = pick(deps, paths(state, "file"));
  const old = path === undefined ? undefined : state.tree.get(path);
  if (path === undefined || old === undefined || old === "folder") return undefined;
  const size = deps.random.below(old.bytes.length + 10_000);
  const bytes = Buffer.alloc(size);
  bytes.set(old.bytes.subarray(0, size));
  const after = withEntry(state, path, contentOf(bytes));
  const request = { path: at(deps, path), truncateSize: BigInt(size) };
  return { kind: "truncate", after, run: async () => void (await deps.client.writeFile(request, deps)) };
}

function mkdir(deps: StepDeps, state: LaneState): Step | undefined {
  if (paths(state, "folder").length > 5) return undefined;
  const path = freshPath(deps, state);
  const after = withEntry(state, path, "folder");
  const request = { path: at(deps, path) };
  return { kind: "mkdir", after, run: async () => void (await deps.client.createDirectory(request, deps)) };
}

function rename(deps: StepDeps, state: LaneState): Step | undefined {
  const from = pick(deps, [...state.tree.keys()]);
  if (from === undefined) return undefined;
  const isFile = state.tree.get(from) !== "folder";
  const over = isFile && deps.random.chance(0.3) ? pick(deps, paths(state, "file")) : undefined;
  const to = over ?? freshPath(deps, state);
  if (isWithin(to, from)) return undefined;
  const onConflict = over === undefined ? OnConflict.FAIL : OnConflict.REPLACE;
  const request = { path: at(deps, from), targetPath: at(deps, to), onConflict };
  const after = renamed(state, from, to);
  return { kind: "rename", after, run: async () => void (await deps.client.rename(request, deps)) };
}

function copy(deps: StepDeps, state: LaneState): Step | undefined {
  const from = pick(deps, [...state.tree.keys()]);
  if (from === undefined || !hasRoom(state)) return undefined;
  const to = freshPath(deps, state);
  if (isWithin(to, from)) return undefined;
  const request = { path: at(deps, from), targetPath: at(deps, to), onConflict: OnConflict.FAIL };
  const after = withTree(state, to, below(state, from));
  return { kind: "copy", after, run: async () => void (await deps.client.copy(request, deps)) };
}

function trash(deps: StepDeps, state: LaneState): Step | undefined {
  const path = pick(deps, [...state.tree.keys()]);
  const entry = path === undefined ? undefined : state.tree.get(path);
  if (path === undefined || entry === undefined || state.trash.length >= TRASH_MAX) return undefined;
  const rest = new Map(below(state, path));
  rest.delete("");
  const item = { trashId: "", path, entry, below: rest };
  return {
    kind: "trash",
    after: { ...without(state, path), trash: [...state.trash, item] },
    run: async () => {
      const { item: made } = await deps.client.trashFile({ path: at(deps, path) }, deps);
      const trashId = made?.trashId ?? "";
      return (after) => ({ ...after, trash: [...state.trash, { ...item, trashId }] });
    },
  };
}

function restore(deps: StepDeps, state: LaneState): Step | undefined {
  const item = state.trash.length === 0 ? undefined : deps.random.pick(state.trash);
  if (item === undefined) return undefined;
  const path = deps.nextName();
  const tree = new Map(item.below).set("", item.entry);
  const rest = state.trash.filter((each) => each !== item);
  const request = { trashId: item.trashId, targetPath: at(deps, path), onConflict: OnConflict.FAIL };
  return {
    kind: "restore",
    after: { ...withTree(state, path, tree), trash: rest },
    run: async () => void (await deps.client.restoreFile(request, deps)),
  };
}

function purge(deps: StepDeps, state: LaneState): Step | undefined {
  const item = state.trash.length === 0 ? undefined : deps.random.pick(state.trash);
  if (item === undefined) return undefined;
  const after = { ...state, trash: state.trash.filter((each) => each !== item) };
  const request = { trashIds: [item.trashId] };
  return { kind: "purge", after, run: async () => void (await deps.client.purgeTrash(request, deps)) };
}

function remove(deps: StepDeps, state: LaneState): Step | undefined {
  const path = pick(deps, [...state.tree.keys()]);
  if (path === undefined) return undefined;
  const request = { path: at(deps, path), recursive: true };
  const after = without(state, path);
  return { kind: "delete", after, run: async () => void (await deps.client.deleteFile(request, deps)) };
}

/** Ends a share of this path, or makes one where no share above it stands in the way. */
function share(deps: StepDeps, state: LaneState): Step | undefined {
  const path = pick(deps, [...state.tree.keys()]);
  if (path === undefined) return undefined;
  const user = deps.random.pick(deps.others);
  const related = [...state.shares].filter(
    ([top, users]) => users.has(user) && top !== path && (isWithin(path, top) || isWithin(top, path)),
  );
  if (related.length > 0) return undefined;
  const users = new Set(state.shares.get(path));
  const request = { path: at(deps, path), user };
  const isShared = users.delete(user);
  if (!isShared) users.add(user);
  const after = { ...state, shares: new Map(state.shares).set(path, users) };
  return isShared
    ? { kind: "unshare", after, run: async () => void (await deps.client.unshare(request, deps)) }
    : { kind: "share", after, run: async () => void (await deps.client.share(request, deps)) };
}

/** Begins an upload that outlives its streams, or continues the one begun from the server's offset. */
function resumable(deps: StepDeps, state: LaneState): Step | undefined {
  const { upload: begun } = state;
  if (begun === undefined) {
    if (!hasRoom(state)) return undefined;
    const path = deps.nextName();
    const content = deps.contents.make(CHUNK_BYTES + deps.random.below(CHUNK_BYTES));
    const request = { path: at(deps, path), size: BigInt(content.bytes.length) };
    return {
      kind: "begin upload",
      after: state,
      run: async () => {
        const { uploadId } = await deps.client.beginUpload(request, deps);
        return (after) => ({ ...after, upload: { uploadId, path, content } });
      },
    };
  }
  const { uploadId, path, content } = begun;
  return {
    kind: "resume upload",
    after: { ...withEntry(state, path, content), upload: undefined },
    run: async () => {
      const { offset } = await deps.client.getUpload({ uploadId }, deps);
      await upload(deps, { path, content, resume: { uploadId, offset: Number(offset) } });
    },
  };
}

async function upload(
  deps: StepDeps,
  file: { path: string; content: Content; resume?: { uploadId: string; offset: number } },
): Promise<void> {
  const { bytes } = file.content;
  const { uploadId = "", offset = 0 } = file.resume ?? {};
  const isKnown = file.resume !== undefined || bytes.length % 2 === 0;
  const size = isKnown ? { size: BigInt(bytes.length), sizeKnown: true } : {};
  const header = { path: at(deps, file.path), uploadId, resumeOffset: BigInt(offset), ...size };
  async function* parts() {
    yield { part: { case: "header" as const, value: header } };
    for (let from = offset; from < bytes.length; from += MESSAGE_BYTES) {
      const chunk = { offset: BigInt(from), data: bytes.subarray(from, from + MESSAGE_BYTES) };
      yield { part: { case: "chunk" as const, value: chunk } };
    }
  }
  await deps.client.uploadFile(parts(), deps);
}

const KINDS: readonly Kind[] = [
  [30, create],
  [12, overwrite],
  [8, write],
  [5, truncate],
  [5, mkdir],
  [10, rename],
  [6, copy],
  [7, trash],
  [5, restore],
  [2, purge],
  [7, remove],
  [5, share],
  [4, resumable],
];
