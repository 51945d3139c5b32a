// Planted bugs that killing a FileServer under load must show.
import type { PlantedBug } from "#prove/rig.ts";

/** They lie in the start of a server and in what a restart forgets. */
export const killBugs: readonly PlantedBug[] = [
  {
    name: "start-sweeps-named-chunks",
    is: "the start removes every chunk file of a directory that was in use, those with rows too",
    rigs: ["kill"],
    edits: [
      {
        file: "src/storage/metadata/start-recovery.ts",
        from: "if (!isChunkName(name) || known.get(name) !== undefined) continue;",
        to: "if (!isChunkName(name) || known.get(name) === null) continue;",
      },
    ],
  },
  {
    name: "start-forgets-uploads",
    is: "the start takes resumable uploads for leftovers of the crash",
    rigs: ["kill"],
    edits: [
      {
        file: "src/storage/metadata/start-recovery.ts",
        from: 'db.exec("DELETE FROM copying");',
        to: 'db.exec("DELETE FROM copying"); db.exec("DELETE FROM upload");',
      },
    ],
    goal: 20,
  },
  {
    name: "quotas-saved-behind",
    is: "a quota is in force and acknowledged at once, and saved in the background with those that follow",
    rigs: ["kill"],
    edits: [
      {
        file: "src/quota/quota-store.ts",
        from: "const mine = this.#lastSet.then(() => this.#replace(username, change));",
        to: "this.#entries = { ...this.#entries, quotas: new Map(this.#entries.quotas).set(username, quotaBytes) }; const mine = this.#lastSet.then(async () => { await new Promise((resolve) => setTimeout(resolve, 100)); await this.#replace(username, change); });",
      },
      {
        file: "src/quota/quota-store.ts",
        from: "      await mine;",
        to: "      void mine.catch(() => undefined);",
      },
    ],
  },
];
