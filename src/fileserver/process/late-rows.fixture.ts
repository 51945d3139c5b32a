// A storage whose rows come late, as those of the shared engine do.
import { RowsToCome } from "#storage/contract/rows-to-come.ts";

/** The same storage with each call answered at its second try; the first one throws RowsToCome. */
export function withLateRows<T extends object>(storage: T, asked = new Set<string>()): T {
  return new Proxy(storage, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key === "shares") return withLateRows(value as object, asked);
      if (typeof value !== "function") return value;
      return (...params: unknown[]): unknown => {
        const call = `${String(key)} ${JSON.stringify(params)}`;
        if (asked.has(call)) return value.apply(target, params) as unknown;
        asked.add(call);
        throw new RowsToCome(Promise.resolve());
      };
    },
  });
}
