// Puts aside, after a question, entries of a download's target that the source lacks.
import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { ClientContext } from "#client/connection/client-context.ts";
import { localFailure } from "#client/terminal/client-error.ts";
import { PUT_ASIDE } from "./local-folder.ts";
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

/** Why nothing can be moved beside a folder: a disk is mounted there, or the folder above is another user's. */
const NOT_BESIDE: readonly (string | undefined)[] = ["EXDEV", "EACCES", "EPERM", "EROFS"];

/** Lists the surplus, asks unless confirmed, and moves it into a folder beside its own, or in it. */
export async function putAside(
  deps: LocalSurplusDeps,
  surplus: readonly LocalSurplus[],
  isSure: boolean,
): Promise<void> {
  const [first] = surplus;
  if (first === undefined) return;
  const { context, report, nowMs } = deps;
  checkCount(surplus.length);
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "");
  const places = new Map<string, string>();
  for (const { top } of surplus) if (!places.has(top)) places.set(top, placeOf(top, stamp));
  const where = placeIn(places, first.top);
  const names = surplus.map(({ path }) => path);
  if (!isSure && !(await askAboutSurplus(context, names, `not on the cluster. Move to ${where}?`))) return;
  report.removedTo = where;
  for (const { top, path } of surplus) {
    const aside = join(placeIn(places, top), relative(top, path));
    try {
      mkdirSync(dirname(aside), { recursive: true });
      renameSync(path, aside);
      report.removed++;
    } catch (error) {
      report.fail(path, localFailure(error, path));
    }
  }
}

function placeIn(places: ReadonlyMap<string, string>, top: string): string {
  return places.get(top) ?? top;
}

/** Beside the folder where one of its own can be moved there, which is tried; else in it. */
function placeOf(top: string, stamp: string): string {
  const beside = `${top}.removed-${stamp}`;
  const probe = join(top, PUT_ASIDE + randomBytes(6).toString("hex"));
  try {
    mkdirSync(probe);
    renameSync(probe, beside);
    rmdirSync(beside);
    return beside;
  } catch (error) {
    rmdirQuietly(probe);
    return NOT_BESIDE.includes((error as NodeJS.ErrnoException).code) ? join(top, PUT_ASIDE + stamp) : beside;
  }
}

function rmdirQuietly(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // It was not made.
  }
}
