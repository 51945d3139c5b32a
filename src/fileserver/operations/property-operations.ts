// GetProperties and ChangeProperties: what WebDAV programs keep with files and folders (RFC 4918, section 4).
import { GroveError } from "#base/errors.ts";
import { requireElement } from "#fileserver/doors/xml-rule.ts";
import {
  PROPERTIES_MAX_BYTES,
  type PropertyEdit,
  type PropertyStorage,
  type StoredProperty,
} from "#storage/contract/properties.ts";
import { whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import { type Access, existing, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { Changes } from "./changes.ts";
import type { LockRule } from "./lock-rule.ts";
import type { Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** Changes in one call. */
const EDITS_MAX = 1_000;

/** Properties of an inode, and whether its owner's root has none at all. */
export interface SeenProperties {
  readonly properties: readonly StoredProperty[];
  readonly noneInRoot: boolean;
}

/** Dependencies of the operations. */
export interface PropertyDeps {
  readonly properties: PropertyStorage;
  readonly access: Access;
  readonly locks: LockRule;
  readonly changes: Changes;
  readonly meter: OperationMeter;
}

/** The operations on properties. Errors are those of D1. */
export class PropertyOperations {
  readonly #deps: PropertyDeps;

  constructor(deps: PropertyDeps) {
    this.#deps = deps;
  }

  /** Properties of a file or folder. Needs read. */
  get(caller: Caller, place: Place): SeenProperties | Promise<SeenProperties> {
    const { meter, access, properties } = this.#deps;
    return meter.run("read", () => {
      const reached = access.reach(caller.identity, place.root, place.path, "read");
      const { id } = existing(reached);
      const isNone = properties.bytesIn(reached.owner) === 0;
      return { properties: isNone ? [] : properties.of(id), noneInRoot: isNone && reached.isOwner };
    });
  }

  /**
   * Changes properties in order, all or none, and returns the bytes that are there now. Needs write. Throws
   * BAD_ARGUMENT for more than 65,536 bytes, QUOTA_EXCEEDED, DISK_RESERVE, LOCKED.
   */
  change(caller: Caller, request: Place & { readonly edits: readonly PropertyEdit[] }): Promise<number> {
    const { meter, access, locks, changes, properties } = this.#deps;
    return meter.later("write", () =>
      retryWhenStale(async (isLast) => {
        const setBytes = checkedBytes(request.edits);
        const reached = access.reach(caller.identity, request.root, request.path, "write");
        const { id } = existing(reached);
        locks.require(caller, reached, "content");
        const addsBytes = isLast ? setBytes : addedBytes(properties.of(id), request.edits);
        // A change that frees space takes no claim, so it works over quota and on a full disk (D14).
        const claim = setBytes === 0 || addsBytes < 0 ? undefined : { creates: 0, addsBytes };
        const wanted = { inodeId: id, edits: request.edits, maxAddedBytes: Math.max(0, addsBytes) };
        await changes.run(caller, reached, claim, (context) => properties.change({ ...context, ...wanted }));
        // Not the whole attempt again: the change is made.
        const kept = await whenRowsAreHere(() => properties.of(id));
        return kept.reduce((sum, property) => sum + bytesOf(property), 0);
      }),
    );
  }
}

/** Bytes that edits add to what is there; below 0 where they free some. */
function addedBytes(present: readonly StoredProperty[], edits: readonly PropertyEdit[]): number {
  const bytes = new Map(present.map((property) => [keyOf(property), bytesOf(property)]));
  const total = (): number => bytes.values().reduce((sum, each) => sum + each, 0);
  const before = total();
  for (const edit of edits) {
    if (edit.kind === "set") bytes.set(keyOf(edit), bytesOf(edit));
    else bytes.delete(keyOf(edit));
  }
  return total() - before;
}

function keyOf({ namespace, name }: StoredProperty): string {
  return JSON.stringify([namespace, name]);
}

/** Bytes that edits add at most. Throws BAD_ARGUMENT. */
function checkedBytes(edits: readonly PropertyEdit[]): number {
  if (edits.length > EDITS_MAX) {
    throw new GroveError("BAD_ARGUMENT", `one call has at most ${EDITS_MAX} changes of properties`);
  }
  if (edits.some(({ name }) => name === "")) {
    throw new GroveError("BAD_ARGUMENT", "a property has a name");
  }
  let bytes = 0;
  for (const edit of edits) if (edit.kind === "set") bytes += bytesOf(edit);
  if (bytes > PROPERTIES_MAX_BYTES) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `properties have at most ${PROPERTIES_MAX_BYTES} bytes at one place`,
    );
  }
  for (const edit of edits) if (edit.kind === "set") requireElement(edit);
  return bytes;
}

function bytesOf({ namespace, name, xml }: StoredProperty): number {
  return Buffer.byteLength(namespace) + Buffer.byteLength(name) + Buffer.byteLength(xml);
}
