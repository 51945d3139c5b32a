// A store that is ready for operations, and the content of their folders before and after each.
import { join } from "node:path";
import { OWNER, openTestStorage } from "#storage/local/store.fixture.ts";
import { BY, type Operation, placeIn } from "./operations.ts";
import { dumpOf } from "./store-dump.ts";
import type { SubjectLine } from "./subject.fixture.ts";
import { runSubject, type SubjectRun } from "./subject.ts";
import { type Allowed, copyDirectory, problemsOf } from "./verify-store.ts";

/** One template, copied for each attack. */
export class Scene {
  readonly operations: readonly Operation[];
  /** An undisturbed run on a copy. */
  readonly reference: SubjectRun;
  readonly #folder: string;
  readonly #before: ReadonlyMap<string, readonly string[]>;
  readonly #after: ReadonlyMap<string, readonly string[]>;
  #copies = 0;

  private constructor(parts: {
    operations: readonly Operation[];
    reference: SubjectRun;
    folder: string;
    before: ReadonlyMap<string, readonly string[]>;
    after: ReadonlyMap<string, readonly string[]>;
  }) {
    this.operations = parts.operations;
    this.reference = parts.reference;
    this.#folder = parts.folder;
    this.#before = parts.before;
    this.#after = parts.after;
  }

  /**
   * Prepares the operations and runs them once, with copies at every point if asked for. Throws when that
   * fails, since then there is nothing to attack.
   */
  static async make(
    folder: string,
    operations: readonly Operation[],
    settings: { compileCache: string; withReads: boolean; copies?: string },
  ): Promise<Scene> {
    const template = join(folder, "template");
    const storage = await openTestStorage(template);
    const root = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
    for (const operation of operations) {
      await storage.createDirectory({ ...BY, parentId: root.directoryId, name: operation.name });
      await operation.prepare?.(placeIn(storage, template, operation.name));
    }
    await storage.close();
    const before = await dumps(template, operations);
    const directory = join(folder, "reference");
    await copyDirectory(template, directory);
    const { compileCache, ...follow } = settings;
    const names = operations.map(({ name }) => name);
    const plan = { directory, tells: true, ...follow };
    const reference = await runSubject({ mode: "operate", operations: names, plan, compileCache });
    const failed = reference.lines.find(({ event }) => event === "failed" || event === "failure");
    if (reference.end !== 0 || failed !== undefined || reference.lines.at(-1)?.event !== "end")
      throw new Error(
        `${names.join(", ")} does not run: ${JSON.stringify(failed ?? reference.end)} ${reference.stderr}`,
      );
    await copyDirectory(directory, join(folder, "left"));
    const after = await dumps(directory, operations);
    const scene = new Scene({ operations, reference, folder, before, after });
    const problems = await problemsOf(directory, scene.allowed(reference.lines));
    if (problems.length > 0) throw new Error(`${names.join(", ")} undisturbed: ${problems.join("; ")}`);
    return scene;
  }

  /** A copy of the template. */
  copy(): Promise<string> {
    return this.#copyOf("template");
  }

  /** A copy of the folder of a process that made all changes and did not close the store. */
  copyOfLeft(): Promise<string> {
    return this.#copyOf("left");
  }

  async #copyOf(name: "template" | "left"): Promise<string> {
    const directory = join(this.#folder, `copy-${this.#copies++}`);
    await copyDirectory(join(this.#folder, name), directory);
    return directory;
  }

  /**
   * Returns what each folder may hold after the process's lines; `unknown` are refusals that leave open
   * whether the change was made.
   */
  allowed(lines: readonly SubjectLine[], unknown: ReadonlySet<string> = new Set()): Allowed[] {
    return this.operations.map(({ name: folder, isGradual = false }) => {
      const before = { is: "as before", lines: this.#before.get(folder) ?? [] };
      const after = { is: "as acknowledged", lines: this.#after.get(folder) ?? [] };
      const own = lines.filter(({ operation }) => operation === folder);
      const end = own.at(-1);
      const isRefused = end?.event === "failed" && !unknown.has(end.text ?? "") && !isGradual;
      const states =
        end?.event === "done" ? [after] : end === undefined || isRefused ? [before] : [before, after];
      return { folder, states, isGradual };
    });
  }
}

async function dumps(
  directory: string,
  operations: readonly Operation[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const storage = await openTestStorage(directory);
  try {
    const found = new Map<string, readonly string[]>();
    for (const { name } of operations) found.set(name, await dumpOf(storage, directory, name));
    return found;
  } finally {
    await storage.close();
  }
}
