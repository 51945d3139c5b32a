// The storage of the shared engine in this process, as a FileServer opens it, without a server before it.
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import {
  type OpenedEngine,
  type OpenSharedStorageOptions,
  openSharedStorage,
} from "#storage/engine/open-shared-storage.ts";

/** What such an engine is told. */
export type BareEngine = Pick<OpenSharedStorageOptions, "database" | "directory" | "store"> &
  Partial<Pick<OpenSharedStorageOptions, "leaseMs">>;

/** Opens it; the disk of its folder has no reserve. */
export function openBareEngine(engine: BareEngine): Promise<OpenedEngine> {
  return openSharedStorage({
    ...engine,
    address: "127.0.0.1:1",
    reserveBytes: 0n,
    hasLocalRoom: () => true,
    takeQuotas: () => Promise.resolve(),
    clock: systemClock,
    random: systemRandom,
    fraction: systemFraction,
    logger: silentLogger,
  });
}
