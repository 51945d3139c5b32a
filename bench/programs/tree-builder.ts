// Fills a data directory through the storage room itself, without a network, for a FileServer to open.
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import { callsPerSecond } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";
import { openStorage } from "#storage/local/open-storage.ts";

/** Enough for the writer's largest batches, below the limit of its queue. */
const IN_FLIGHT = 2_048;

serveTasks(
  {
    // Folders /d0, /d1, … (or from `firstFolder` on) with files f0, f1, … in each; answers inodes per second.
    build: async (input) => {
      const {
        directory,
        owner,
        firstFolder = 0,
        folders,
        filesPerFolder,
      } = input as {
        directory: string;
        owner: string;
        firstFolder?: number;
        folders: number;
        filesPerFolder: number;
      };
      const storage = await openStorage({
        directory,
        clock: systemClock,
        random: systemRandom,
        logger: silentLogger,
      });
      const root =
        storage.root(owner) ?? (await storage.createRoot({ owner, rootId: ulid(systemClock, systemRandom) }));
      const context = { owner, by: owner, accessVersion: root.accessVersion };
      const parents: number[] = [];
      for (let at = 0; at < folders; at += 1) {
        const made = storage.createDirectory({
          ...context,
          parentId: root.directoryId,
          name: `d${firstFolder + at}`,
        });
        parents.push((await made).inode.id);
      }
      const data = new Uint8Array(0);
      const rate = await callsPerSecond(folders * filesPerFolder, IN_FLIGHT, (at) =>
        storage.createFile({
          ...context,
          parentId: parents[Math.floor(at / filesPerFolder)]!,
          name: `f${at % filesPerFolder}`,
          data,
          mtimeMs: 0,
        }),
      );
      await storage.close();
      return rate;
    },
  },
  () => undefined,
);
