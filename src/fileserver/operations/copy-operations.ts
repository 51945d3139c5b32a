// Copies files and directories inside one root by sharing stored chunks; charged in full first (D13).
import { GroveError } from "#base/errors.ts";
import type { CopyTarget } from "#storage/contract/copy-order.ts";
import type { Inode } from "#storage/contract/inode.ts";
import { againWhenRowsCome, whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type Access, existing, type Reached, type Slot, slotOf } from "./access.ts";
import type { Caller } from "./caller.ts";
import { type Changes, contextOf, mayMakeWay, type ToPlace, versionsOf } from "./changes.ts";
import type { LockRule } from "./lock-rule.ts";
import { movedAttr, type Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** Dependencies of the operation. */
export interface CopyDeps {
  readonly storage: Storage;
  readonly access: Access;
  readonly locks: LockRule;
  readonly changes: Changes;
  readonly meter: OperationMeter;
}

type CopyRequest = Place & ToPlace;

/** Copies within a root. */
export class CopyOperations {
  readonly #deps: CopyDeps;

  constructor(deps: CopyDeps) {
    this.#deps = deps;
  }

  /**
   * Copies a file or a whole directory, which appears at once. Needs read on the source and write on the
   * target, which may lie in another shared subtree (D13), and delete over a directory, or a file with shares or links
   * of its own. Ends when the signal aborts. Throws PATH_EXISTS,
   * NOT_EMPTY, QUOTA_EXCEEDED, INODE_LIMIT, DISK_RESERVE; RATE_LIMITED when too many of the caller's copies
   * wait; OVERLOADED when too many of all users wait or the source keeps changing.
   */
  copy(caller: Caller, request: CopyRequest, signal: AbortSignal): Promise<Attr> {
    const { storage, changes, meter } = this.#deps;
    return meter.later("write", async () => {
      const asked = await againWhenRowsCome(() => this.#decide(caller, request));
      const propertyBytes = await storage.properties.copiedBytes(asked.target.owner, asked.source);
      const begun = await againWhenRowsCome(() => {
        const first = this.#decide(caller, request);
        return { decision: first, below: storage.inodesBelow(first.source.id) };
      });
      let { decision } = begun;
      // The source as it was when its bytes and inodes were claimed.
      const addsBytes = decision.source.sizeBytes + propertyBytes;
      const claim = { creates: 1 + begun.below, addsBytes };
      const change = await changes.run(caller, decision.target, claim, (_, holding) =>
        storage.copy({
          by: caller.identity.username,
          signal,
          maxBytes: addsBytes,
          maxInodes: holding.inodes,
          // Rows take room as well, and other changes write meanwhile (spec 4.6.3).
          mayGoOn: () => holding.checkChunk(0),
          target: () => {
            decision = this.#decide(caller, request);
            return targetOf(caller, decision, request);
          },
        }),
      );
      return await whenRowsAreHere(() => movedAttr(storage, decision.target, change.inode));
    });
  }

  #decide(caller: Caller, request: CopyRequest): { source: Inode; target: Reached; slot: Slot } {
    const { access, storage } = this.#deps;
    const source = existing(access.reach(caller.identity, request.root, request.path, "read"));
    const target = access.reach(caller.identity, request.root, request.targetPath, "write");
    const slot = slotOf(target, "BAD_ARGUMENT");
    if (source.parentId === undefined) {
      throw new GroveError("BAD_ARGUMENT", "a root cannot be copied into itself");
    }
    this.#deps.locks.require(caller, target, "entries");
    this.#deps.locks.require(caller, target, "tree");
    const { present } = slot;
    const mayReplace =
      present === undefined ||
      (target.isOwner ? present.kind === "file" : mayMakeWay(storage, target.owner, present));
    const { onConflict } = request;
    if (onConflict === "trash" || (onConflict === "replace" && !mayReplace)) {
      access.reach(caller.identity, request.root, request.targetPath, "delete");
    }
    return { source, target, slot };
  }
}

function targetOf(
  caller: Caller,
  { source, target, slot }: { source: Inode; target: Reached; slot: Slot },
  request: CopyRequest,
): CopyTarget {
  const { onConflict } = request;
  const place = { parentId: slot.parent.id, name: slot.name, onConflict };
  const seesAll = target.heir !== undefined;
  return { ...contextOf(caller, target), sourceId: source.id, seesAll, ...place, ...versionsOf(request) };
}
