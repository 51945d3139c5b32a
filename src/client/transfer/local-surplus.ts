// Puts aside, after a question, entries of a download's target that the source lacks.
import { mkdirSync, renameSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { ClientContext } from "#client/connection/client-context.ts";
import { localFailure } from "#client/terminal/client-error.ts";
import { askAboutSurplus, checkCount } from "./surplus.ts";
import type { TransferReport } from "./transfer-report.ts";

/** One file or folder of this machine that the source does not have. */
export interface LocalSurplus {
  /** The folder that the source became. */
  readonly top: string;
  readonly path: string;
}

/** The dependencies of putting entries aside. */
export interface LocalSurplusDeps {
  readonly context: ClientContext;
  readonly report: TransferReport;
  /** Wall time, which names the new folders. */
  readonly nowMs: number;
}

/** Lists the surplus, asks unless confirmed, and moves it into a folder beside its own. */
export async function putAside(
  deps: LocalSurplusDeps,
  surplus: readonly LocalSurplus[],
  isSure: boolean,
): Promise<void> {
  const [first] = surplus;
  if (first === undefined) return;
  const { context, report, nowMs } = deps;
  checkCount(surplus.length);
  const suffix = `.removed-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "")}`;
  const where = first.top + suffix;
  const names = surplus.map(({ path }) => path);
  if (!isSure && !(await askAboutSurplus(context, names, `not on the cluster. Move to ${where}?`))) return;
  report.removedTo = where;
  for (const { top, path } of surplus) {
    const aside = join(top + suffix, relative(top, path));
    try {
      mkdirSync(dirname(aside), { recursive: true });
      renameSync(path, aside);
      report.removed++;
    } catch (error) {
      report.fail(path, localFailure(error, path));
    }
  }
}
