// Puts into the trash, after a question, entries of an upload's target that the source lacks.
import { formatBytes } from "#base/bytes.ts";
import { isGroveError } from "#base/errors.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type Cluster, ONCE } from "#client/connection/cluster.ts";
import { isFinal } from "#client/connection/final-failure.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { SURPLUS_MAX, SURPLUS_SHOWN_MAX } from "#client/terminal/limits.ts";
import { askToGoOn } from "#client/terminal/prompt.ts";
import { isTty } from "#client/terminal/terminal.ts";
import { TransferPool } from "./transfer-pool.ts";
import type { TransferReport } from "./transfer-report.ts";

/** One file or folder that the source does not have. */
export interface Surplus {
  readonly path: string;
  readonly isFolder: boolean;
  /** For a folder the size of its whole content. */
  readonly sizeBytes: number;
}

/** Dependencies of removing the surplus. */
export interface SurplusDeps {
  readonly context: ClientContext;
  readonly cluster: Cluster;
  readonly report: TransferReport;
  /** Username of the root that it is in; empty for one's own. */
  readonly root: string;
}

const ASKING = "this takes files away, and there is no terminal to ask on";

/** Refuses before the transfer when the question after it could not be asked. Throws USAGE. */
export function checkCanAsk(context: ClientContext, isSure: boolean): void {
  if (isSure || isTty(context.terminal.input)) return;
  throw new ClientError("USAGE", ASKING, { todo: "Add --yes to do it without a question." });
}

/** Lists the surplus, asks unless confirmed, and puts it into the trash. */
export async function removeSurplus(
  deps: SurplusDeps,
  surplus: readonly Surplus[],
  isSure: boolean,
): Promise<void> {
  if (surplus.length === 0) return;
  const { context, cluster, report, root } = deps;
  checkCount(surplus.length);
  if (!isSure) {
    const bytes = surplus.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const names = surplus.map(
      ({ path, isFolder }) => formatRemotePath({ root, path }) + (isFolder ? "/" : ""),
    );
    const what = `not in the source (${formatBytes(bytes)}). Move to the trash?`;
    if (!(await askAboutSurplus(context, names, what))) return;
  }
  const pool = new TransferPool();
  for (const { path } of surplus) {
    const added = pool.add(async () => {
      try {
        await cluster.runAt({ root, path }, ONCE, (server) =>
          server.files.trashFile({ root, path }, server.unary),
        );
        report.removed++;
      } catch (error) {
        // Another client was faster.
        if (isGroveError(error, "NO_SUCH_PATH")) return;
        if (isFinal(error)) throw error;
        report.fail(path, error);
      }
    }, "small");
    if (added !== true) await added;
  }
  await pool.done();
}

/** Throws USAGE for so many that the source or the target must be a mistake. */
export function checkCount(count: number): void {
  if (count <= SURPLUS_MAX) return;
  throw new ClientError(
    "USAGE",
    `more than ${SURPLUS_MAX.toLocaleString("en-US")} files and folders are not in the source; none was taken away`,
    { todo: "Check the source and the target." },
  );
}

/** Lists the surplus, and asks. */
export function askAboutSurplus(
  context: ClientContext,
  names: readonly string[],
  what: string,
): Promise<boolean> {
  for (const name of names.slice(0, SURPLUS_SHOWN_MAX)) context.note(`  ${name}`);
  const more = names.length - SURPLUS_SHOWN_MAX;
  if (more > 0) context.note(`  and ${more.toLocaleString("en-US")} more`);
  const many = names.length === 1 ? "This is" : `These ${names.length.toLocaleString("en-US")} are`;
  return askToGoOn(context, `${many} ${what} [y/N] `, ASKING);
}
