// Carries out changes of people's addresses on the shared engine, once for all processes (D34).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { pause } from "#base/waiting.ts";
import type { UserRename } from "#storage/contract/user-rename.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import { readyToRename, renamedUpTo, renameUserRows } from "#storage/shared/user-rename-rows.ts";
import type { EngineFolder } from "./data-folder.ts";
import type { HeldRoots } from "./held-roots.ts";

/** Looks for processes that have yet to hear of a change, before the next heartbeat tries it again. */
const LOOKS = 10;
const LOOK_MS = 200;

/** Dependencies of the changes. */
export interface SharedRenamesDeps {
  readonly folder: Pick<EngineFolder, "instance" | "keepRenamedUpTo" | "renamedUpTo">;
  /** For statements that may take long. */
  readonly line: SharedLine;
  readonly writer: Pick<SharedWriter, "renamed">;
  readonly roots: Pick<HeldRoots, "renamed">;
  readonly clock: Clock;
}

/** Changes of addresses, one at a time, in the order of their versions. */
export class SharedRenames {
  readonly #deps: SharedRenamesDeps;
  #upTo: number;

  private constructor(deps: SharedRenamesDeps, upTo: number) {
    this.#deps = deps;
    this.#upTo = upTo;
  }

  /** A new folder has nothing of the time before. Rejects when the database does not answer. */
  static async open(deps: SharedRenamesDeps): Promise<SharedRenames> {
    return new SharedRenames(deps, deps.folder.renamedUpTo ?? (await deps.line.run(renamedUpTo)));
  }

  /** The version of the last one that this process has carried out. */
  get upTo(): number {
    return this.#upTo;
  }

  /**
   * Renames in the database when every process is ready, then takes the new names here; the caller has ended the
   * person's sessions. Throws STORE_UNAVAILABLE while one is not ready, and what `renameUserRows` does.
   */
  async carryOut(rename: UserRename): Promise<number> {
    const { folder, line, writer, roots } = this.#deps;
    const { version } = rename;
    if (version <= this.#upTo) return 0;
    await line.run((client) => readyToRename(client, folder.instance, version));
    const rows = await this.#whenAllAreReady(rename);
    await writer.renamed();
    await roots.renamed();
    await folder.keepRenamedUpTo(version);
    this.#upTo = version;
    return rows;
  }

  async #whenAllAreReady(rename: UserRename): Promise<number> {
    const { line, clock } = this.#deps;
    for (let look = 1; look <= LOOKS; look++) {
      const rows = await line.run((client) => renameUserRows(client, rename));
      if (rows !== undefined) return rows;
      await pause(clock, LOOK_MS);
    }
    throw new GroveError(
      "STORE_UNAVAILABLE",
      "another process of the shared engine has yet to hear that an address has changed",
    );
  }
}
