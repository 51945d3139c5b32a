// The specified answer and effect of every call on the model: one function for each.
import { crc32 } from "node:zlib";
import {
  type By,
  changed,
  type FileModel,
  hang,
  letsIn,
  makeNode,
  moved,
  type Node,
  nodesFrom,
  pathOf,
  sizeOf,
  unhang,
  type Walk,
} from "./file-model.ts";
import type { Conflict, Operation } from "./operations.ts";
import { type Facts, factsOf, type Outcome } from "./outcome.ts";
import { existing, file, folder, Places, Refused, type Slot } from "./places.ts";

const READ_MAX_BYTES = 4_000_000;

/**
 * Applies a call to the model and returns the answer that it must have; `seen` is the actual answer, for
 * values that only the server can know.
 */
export function expected(model: FileModel, operation: Operation, pool: Buffer, seen: Outcome): Outcome {
  try {
    return new Expectation(model, operation.by, pool, seen).of(operation);
  } catch (error) {
    if (error instanceof Refused) return { refused: error.code };
    throw error;
  }
}

class Expectation extends Places {
  of(operation: Operation): Outcome {
    switch (operation.op) {
      case "createDirectory":
        return this.#create(operation.path, undefined);
      case "createFile":
        return this.#create(operation.path, this.bytes(operation.data));
      case "upload":
        return this.#upload(operation.path, this.bytes(operation.data), operation.mayReplace);
      case "write":
        return this.#write(operation.path, operation.offset, this.bytes(operation.data));
      case "truncate":
        return this.#truncate(operation.path, operation.size);
      case "rename":
        return this.#rename(operation);
      case "copy":
        return this.#copy(operation);
      case "delete":
        return this.#delete(operation.path, operation.recursive);
      case "trash":
        return this.#trash(operation.path);
      case "restore":
        return this.#restore(operation.item, operation.target, operation.onConflict);
      case "purge":
        return this.#purge(operation.items);
      case "share":
        return this.#share(operation.path, operation.user);
      case "unshare":
        return this.#unshare(operation.path, operation.user);
      default:
        return this.#look(operation);
    }
  }

  #look(operation: Operation): Outcome {
    switch (operation.op) {
      case "getAttr":
        return this.attr(existing(this.reach(operation.path, "read")));
      case "changeDir":
        return this.attr(folder(existing(this.reach(operation.path, "read"))));
      case "list":
        return this.#list(operation.path, operation.sort);
      case "read":
        return this.#read(operation.path, operation.offset, operation.length || READ_MAX_BYTES);
      case "download":
        return this.#read(operation.path, operation.offset, operation.length || Number.MAX_SAFE_INTEGER);
      case "showTrash":
        return this.#showTrash();
      case "getQuota":
        return this.#getQuota();
      case "setQuota":
        this.model.quotaBytes = operation.bytes;
        return { numbers: { success: 1 } };
      default:
        throw new Error(`no expectation for ${operation.op}`);
    }
  }

  #create(path: string, bytes: Buffer | undefined): Outcome {
    const { parent, name, present } = this.slot(this.reach(path, "write"), "PATH_EXISTS");
    if (present !== undefined) throw new Refused("PATH_EXISTS");
    this.need(this.model.whyNoRoom(bytes?.length ?? 0, true));
    const node = this.make(name, bytes);
    hang(parent, name, node);
    return this.attr(node);
  }

  #upload(path: string, bytes: Buffer, mayReplace: boolean): Outcome {
    const { parent, name, present } = this.slot(this.reach(path, "write"), "IS_DIRECTORY");
    if (present?.children !== undefined) throw new Refused("IS_DIRECTORY");
    if (present !== undefined && !mayReplace) throw new Refused("PATH_EXISTS");
    this.need(this.model.whyNoRoom(bytes.length, present === undefined));
    if (present === undefined) {
      const node = this.make(name, bytes);
      hang(parent, name, node);
      return this.attr(node);
    }
    this.keepContent(present);
    present.bytes = bytes;
    changed(present);
    return this.attr(present);
  }

  #write(path: string, offset: number, bytes: Buffer): Outcome {
    const node = file(existing(this.reach(path, "write")));
    const end = bytes.length === 0 ? 0 : offset + bytes.length;
    this.need(this.model.whyNoRoom(Math.max(0, end - node.bytes.length), false));
    const grown = Buffer.alloc(Math.max(node.bytes.length, end));
    node.bytes.copy(grown);
    bytes.copy(grown, offset);
    node.bytes = grown;
    changed(node);
    return this.attr(node);
  }

  #truncate(path: string, size: number): Outcome {
    const node = file(existing(this.reach(path, "write")));
    const isCut = size < node.bytes.length;
    // Content that a sharee cuts is kept in the trash as it was.
    if (!isCut) this.need(this.model.whyNoRoom(size - node.bytes.length, false));
    else if (this.by !== "owner") this.need(this.model.whyNoRoom(size, false));
    if (isCut) this.keepContent(node);
    const bytes = Buffer.alloc(size);
    node.bytes.copy(bytes);
    node.bytes = bytes;
    changed(node);
    return this.attr(node);
  }

  #rename({ path, target, onConflict }: { path: string; target: string; onConflict: Conflict }): Outcome {
    const from = this.reach(path, "write");
    const node = existing(from);
    if (node.parent === undefined) throw new Refused("BAD_ARGUMENT");
    const to = this.reach(target, "write");
    const slot = this.slot(to, "BAD_ARGUMENT");
    if (slot.present === node) return this.attr(node);
    const how = this.by === "owner" ? onConflict : this.#shareeMay(from, to, slot, onConflict);
    if (to.chain.includes(node)) throw new Refused("BAD_ARGUMENT");
    const name = this.makeRoom(slot, node, how);
    unhang(node);
    hang(slot.parent, name, node);
    moved(node);
    this.keepOut(slot, node, how);
    return this.attr(node);
  }

  /** Sharees move only within one shared folder, and replace files without shares of their own (D13). */
  #shareeMay(from: Walk, to: Walk, slot: Slot, onConflict: Conflict): Conflict {
    const { present } = slot;
    const isFile = existing(from).children === undefined;
    const above = this.#parentOf(from);
    this.need(this.model.whyNot(above, this.by, "write"));
    const beside = this.#parentOf(to);
    this.need(this.model.whyNot(beside, this.by, "write"));
    if (this.#sharedFolder(above) !== this.#sharedFolder(beside)) throw new Refused("NOT_OWNER");
    if (onConflict !== "replace") return onConflict;
    if (present !== undefined) {
      if (!isFile || !isPlainFile(present)) throw new Refused("NOT_OWNER");
    }
    return isFile ? onConflict : "fail";
  }

  #parentOf({ names }: Walk): Walk {
    return this.model.walk(`/${names.slice(0, -1).join("/")}`);
  }

  /** Returns the highest shared folder below the caller's last exclusion. */
  #sharedFolder({ chain }: Walk): Node | undefined {
    const out = chain.findLastIndex(({ exclusions }) => exclusions.has(this.by));
    return chain.slice(out + 1).find(({ grants }) => grants.has(this.by));
  }

  #copy({ path, target, onConflict }: { path: string; target: string; onConflict: Conflict }): Outcome {
    const source = existing(this.reach(path, "read"));
    const to = this.reach(target, "write");
    const slot = this.slot(to, "BAD_ARGUMENT");
    if (source.parent === undefined) throw new Refused("BAD_ARGUMENT");
    if (onConflict === "replace" && slot.present !== undefined && !isPlainFile(slot.present))
      this.need(this.model.whyNot(to, this.by, "delete"));
    this.need(this.model.whyNoRoom(sizeOf(source), true));
    if (this.model.walk(pathOf(slot.parent)).chain.includes(source)) throw new Refused("BAD_ARGUMENT");
    if (onConflict === "replace" && slot.present === source) throw new Refused("BAD_ARGUMENT");
    const name = this.makeRoom(slot, source, onConflict);
    const node = this.#copyOf(source);
    hang(slot.parent, name, node);
    this.keepOut(slot, node, onConflict);
    return this.attr(node);
  }

  #copyOf(source: Node): Node {
    const { name, bytes, mtimeMs } = source;
    const children = source.children === undefined ? undefined : new Map<string, Node>();
    const node = makeNode({ name, bytes, mtimeMs, createdBy: this.by, ...(children && { children }) });
    for (const child of source.children?.values() ?? []) {
      if (child.exclusions.has(this.by)) continue;
      const copy = this.#copyOf(child);
      copy.parent = node;
      children?.set(copy.name, copy);
    }
    return node;
  }

  #delete(path: string, recursive: boolean): Outcome {
    const node = existing(this.reach(path, "delete"));
    if (node.parent === undefined) throw new Refused("BAD_ARGUMENT");
    if (!recursive && (node.children?.size ?? 0) > 0) throw new Refused("NOT_EMPTY");
    const numbers = { freedBytes: sizeOf(node), inodes: nodesFrom(node).length };
    unhang(node);
    return { numbers };
  }

  #trash(path: string): Outcome {
    const node = existing(this.reach(path, "delete"));
    if (node.parent === undefined) throw new Refused("BAD_ARGUMENT");
    const item = this.putIntoTrash(node);
    const [seen] = "items" in this.seen ? this.seen.items : [];
    item.id = seen?.id;
    return { items: [this.itemFacts(item)] };
  }

  #restore(number: number, target: string, onConflict: Conflict): Outcome {
    this.needOwner();
    const { trash, root } = this.model;
    const item = trash[number % Math.max(1, trash.length)];
    if (item === undefined) throw new Refused("NO_SUCH_PATH");
    const names = (target === "" ? item.path : target).split("/").filter((name) => name !== "");
    const toMake: string[] = [];
    let parent = root;
    for (const name of names.slice(0, -1)) {
      const next = toMake.length > 0 ? undefined : parent.children?.get(name);
      if (next === undefined) toMake.push(name);
      else if (next.children === undefined) throw new Refused("NOT_DIRECTORY");
      else parent = next;
    }
    const wanted = names.at(-1);
    if (wanted === undefined) throw new Refused("PATH_EXISTS");
    if (toMake.length > 0) this.need(this.model.whyNoRoom(0, true));
    const present = toMake.length > 0 ? undefined : parent.children?.get(wanted);
    const slot = { parent, name: wanted, present };
    const name = this.makeRoom(slot, item.node, onConflict);
    for (const folderName of toMake) {
      const made = this.make(folderName, undefined);
      hang(parent, folderName, made);
      for (const { path, user } of item.keptOut) if (path === pathOf(made)) made.exclusions.add(user);
      parent = made;
    }
    this.model.trash = trash.filter((each) => each !== item);
    hang(parent, name, item.node);
    moved(item.node);
    this.keepOut(slot, item.node, onConflict);
    return this.attr(item.node);
  }

  #purge(numbers: readonly number[]): Outcome {
    this.needOwner();
    const { trash } = this.model;
    const named = new Set(numbers.map((number) => trash[number % Math.max(1, trash.length)]));
    const gone = numbers.length === 0 ? trash : trash.filter((item) => named.has(item));
    this.model.trash = trash.filter((item) => !gone.includes(item));
    const freedBytes = gone.reduce((sum, { node }) => sum + sizeOf(node), 0);
    return { numbers: { purged: gone.length, freedBytes } };
  }

  #share(path: string, user: By): Outcome {
    const { chain, ...walk } = this.reach(path, "delete");
    const node = existing({ chain, ...walk });
    if (user === "owner") throw new Refused("BAD_ARGUMENT");
    const wasOut = node.exclusions.has(user);
    const excluded = nodesFrom(node).filter(({ exclusions }) => exclusions.delete(user));
    const isNew = !node.grants.has(user) || excluded.length > 0;
    if (!wasOut || !letsIn(chain.slice(0, -1), user)) node.grants.add(user);
    return { numbers: { inodes: isNew ? nodesFrom(node).length : 0 } };
  }

  #unshare(path: string, user: By): Outcome {
    const { chain, ...walk } = this.reach(path, "delete");
    const node = existing({ chain, ...walk });
    if (user === "owner") throw new Refused("BAD_ARGUMENT");
    const wasOut = node.exclusions.has(user);
    const isInherited = !wasOut && letsIn(chain.slice(0, -1), user);
    const inodes = takeGrants(node, user);
    for (const { exclusions } of nodesFrom(node)) exclusions.delete(user);
    if (wasOut || isInherited) node.exclusions.add(user);
    return { numbers: { inodes: isInherited ? nodesFrom(node).length : inodes } };
  }

  #list(path: string, sort: number): Outcome {
    const node = folder(existing(this.reach(path, "read")));
    const down = sort % 2 === 1 ? -1 : 1;
    const byName = (a: Node, b: Node): number => (a.name < b.name ? -1 : 1);
    const bySize = (a: Node, b: Node): number => sizeOf(a) - sizeOf(b);
    const seenByCaller = [...(node.children?.values() ?? [])].filter(
      ({ exclusions }) => !exclusions.has(this.by),
    );
    const entries = seenByCaller.toSorted((a, b) =>
      sort < 2 ? down * byName(a, b) : down * bySize(a, b) || byName(a, b),
    );
    const seen = "entries" in this.seen ? this.seen.entries : [];
    const seenOf = (name: string): Facts | undefined => seen.find((facts) => facts.name === name);
    return { entries: entries.map((entry) => factsOf(entry, this.by, seenOf(entry.name))) };
  }

  #read(path: string, offset: number, length: number): Outcome {
    const node = file(existing(this.reach(path, "read")));
    if (offset > node.bytes.length) throw new Refused("BAD_ARGUMENT");
    const bytes = node.bytes.subarray(offset, offset + length);
    return { numbers: { bytes: bytes.length, crc32: crc32(bytes) } };
  }

  #showTrash(): Outcome {
    this.needOwner();
    const seen = "items" in this.seen ? [...this.seen.items] : [];
    const known = new Set(this.model.trash.map(({ id }) => id));
    for (const item of this.model.trash.filter(({ id }) => id === undefined)) {
      const match = seen.find(
        ({ id, path, size }) => !known.has(id) && path === item.path && size === sizeOf(item.node),
      );
      item.id = match?.id;
      known.add(match?.id);
    }
    const items = this.model.trash.map((item) => this.itemFacts(item));
    return { items: items.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
  }

  #getQuota(): Outcome {
    const { root, trash, quotaBytes } = this.model;
    const isLetIn = this.by === "owner" || nodesFrom(root).some(({ grants }) => grants.has(this.by));
    if (!isLetIn) throw new Refused("NOT_SHARED");
    const trashBytes = trash.reduce((sum, { node }) => sum + sizeOf(node), 0);
    return { numbers: { quotaBytes, liveBytes: sizeOf(root), trashBytes, stagingBytes: 0 } };
  }
}

/** A file without shares and exclusions of its own. */
function isPlainFile({ children, grants, exclusions }: Node): boolean {
  return children === undefined && grants.size + exclusions.size === 0;
}

/** Ends a user's access to a node and below it; returns the number of inodes. */
function takeGrants(node: Node, user: By): number {
  const all = nodesFrom(node);
  const isHere = node.grants.delete(user);
  if (isHere) {
    for (const each of all) each.grants.delete(user);
    return all.length;
  }
  return [...(node.children?.values() ?? [])].reduce((sum, child) => sum + takeGrants(child, user), 0);
}
