// The gRPC routes of what WebDAV keeps beside files: locks and properties.
import { currentCaller } from "#fileserver/operations/caller.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import type { SeenLock } from "#fileserver/operations/lock-operations.ts";
import type { PropertyEdit, StoredProperty } from "#storage/contract/properties.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { FileServer, LockInfo, Property } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

type Handlers = ServiceHandlers<typeof FileServer>;

/** The handlers of locks. */
export function lockRoutes({
  locks,
}: FileService): Pick<Handlers, "listLocks" | "lock" | "refreshLock" | "unlock"> {
  return {
    lock: (request, context) =>
      locks
        .lock(currentCaller(context), { ...request, isExclusive: !request.shared, isDeep: request.deep })
        .then(lockInfo),
    refreshLock: (request, context) => locks.refresh(currentCaller(context), request).then(lockInfo),
    unlock: (request, context) =>
      locks.unlock(currentCaller(context), { ...request, breaks: request.breakLocks }),
    listLocks: async (request, context) => {
      const held = await locks.list(currentCaller(context), request);
      return { locks: held.map(lockInfo) };
    },
  };
}

/** The handlers of properties. */
export function propertyRoutes({
  properties,
}: FileService): Pick<Handlers, "changeProperties" | "getProperties"> {
  return {
    getProperties: async (request, context) => {
      const { properties: found, noneInRoot } = await properties.get(currentCaller(context), request);
      return { properties: found.map(propertyMessage), noneInRoot };
    },
    changeProperties: async (request, context) => {
      const edits = request.changes.map(({ property, remove }): PropertyEdit => {
        const { namespace = "", name = "", xml = "" } = property ?? {};
        return { kind: remove ? "remove" : "set", namespace, name, xml };
      });
      return { bytes: BigInt(await properties.change(currentCaller(context), { ...request, edits })) };
    },
  };
}

function propertyMessage(property: StoredProperty): Property {
  return { $typeName: "grove.v1.Property", ...property };
}

function lockInfo({ isExclusive, isDeep, ...lock }: SeenLock): LockInfo {
  return { $typeName: "grove.v1.LockInfo", ...lock, shared: !isExclusive, deep: isDeep };
}
