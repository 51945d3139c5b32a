// `grove trash ls --of` and `restore --of`: another user's trash, names for a reason only (D13, spec 5.5).
import { Option } from "commander";
import { GroveError } from "#base/errors.ts";
import { stringify64 } from "#base/json64.ts";
import { LIST_PAGE_MAX, OPERATOR_REASON_MAX_LENGTH } from "#base/limits.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import {
  askPasswordHash,
  passwordMetadata,
  requireSafeForPassword,
} from "#client/administration/admin-password.ts";
import { rootNear } from "#client/administration/quota-set.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type Cluster, ONCE, type Server, SHORT } from "#client/connection/cluster.ts";
import { pages } from "#client/connection/pages.ts";
import { ClientError, HintedRefusal } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type { OperatorLook, TrashItem } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { attrJson, timeText } from "./attr-text.ts";
import { CONFLICTS, type ConflictFlags } from "./conflict-flag.ts";
import { isTrashId, trashJson, trashRow } from "./trash-text.ts";

/** The additional flags of administrators. */
export interface OperatorFlags {
  readonly of?: string;
  readonly reason?: string;
  readonly adminPassword?: boolean;
}

/** The options of both verbs. */
export function operatorOptions(): Option[] {
  return [
    new Option("--of <user>", "another user's trash, for administrators of the cluster"),
    new Option("--reason <text>", "why: names are told for a reason only, and the user is shown it"),
    new Option(
      "--admin-password",
      "ask for the administrator's password: the right to it where you are not the administrator",
    ),
  ];
}

/** Calls to the server with that user's trash. */
interface OperatedTrash {
  readonly owner: string;
  readonly operator: { readonly reason: string };
  run<T>(call: (server: Server) => Promise<T>, isRepeatable: boolean): Promise<T>;
}

/** Lists another user's trash. Without `--reason` it shows no paths. */
export async function listOf(context: ClientContext, of: string, flags: OperatorFlags): Promise<void> {
  const service = await operatedTrashOf(context, of, flags);
  const { owner, operator } = service;
  const read = (pageToken: string) =>
    service.run(
      ({ files, unary }) =>
        files.showTrash({ root: owner, operator, pageSize: LIST_PAGE_MAX, pageToken }, unary),
      true,
    );
  const items: unknown[] = [];
  let count = 0;
  for await (const page of pages(read, ({ items: found }) => found, "the server's list of the trash")) {
    count += page.items.length;
    if (context.isJson) items.push(...page.items.map(trashJson));
    else await context.print(...page.items.map((item) => rowOf(item, operator.reason)));
  }
  if (context.isJson) await context.printJson({ items });
  else if (count === 0) context.note(`The trash of ${owner} is empty.`);
  else if (operator.reason === "") context.note(`Names are told with --reason, which ${owner} is shown.`);
  else context.note(`${owner} is shown that you have seen these names, and why.`);
}

function rowOf(item: TrashItem, reason: string): string {
  return trashRow(reason === "" ? { ...item, originalPath: "…" } : item, "");
}

/** Restores an item of another user's trash for them. Throws USAGE without `--reason`. */
export async function restoreOf(
  context: ClientContext,
  typed: string,
  flags: OperatorFlags & ConflictFlags & { readonly to?: string; readonly of: string },
): Promise<void> {
  if (flags.reason === undefined || flags.reason.trim() === "") {
    throw new ClientError("USAGE", "another user's things are brought back for a reason only", {
      todo: "Add --reason TEXT; the user is shown it.",
    });
  }
  const service = await operatedTrashOf(context, flags.of, flags);
  const { owner, operator } = service;
  const trashId = isTrashId(typed) ? typed : await newestAt(service, typed);
  const request = {
    root: owner,
    operator,
    trashId,
    targetPath: flags.to ?? "",
    onConflict: CONFLICTS[flags.onConflict],
  };
  const attr = await service.run(({ files, unary }) => files.restoreFile(request, unary), false);
  if (context.isJson) await context.printJson({ ...attrJson(attr), trash_id: trashId });
  else context.note(`${owner}:${attr.path} is back. ${owner} is shown that you did it, and why.`);
}

async function newestAt(service: OperatedTrash, typed: string): Promise<string> {
  const { owner, operator } = service;
  const originalPath = joinPath(splitPath(typed.startsWith("/") ? typed : `/${typed}`));
  const request = { root: owner, operator, pageSize: 1, originalPath };
  const { items } = await service.run(({ files, unary }) => files.showTrash(request, unary), true);
  const [newest] = items;
  if (newest !== undefined) return newest.trashId;
  const missing = new GroveError("NO_SUCH_PATH", `nothing in the trash of ${owner} was at ${originalPath}`);
  throw new HintedRefusal(missing, `'grove trash ls --of ${owner} --reason TEXT' shows what there is.`);
}

async function operatedTrashOf(
  context: ClientContext,
  of: string,
  flags: OperatorFlags,
): Promise<OperatedTrash> {
  const reason = (flags.reason ?? "").trim();
  if (reason.length > OPERATOR_REASON_MAX_LENGTH) {
    throw new ClientError("USAGE", `a reason has at most ${OPERATOR_REASON_MAX_LENGTH} characters`);
  }
  const owner = canonicalUsername(of);
  const cluster = await context.cluster();
  const root = await rootNear(cluster, owner);
  const proof = flags.adminPassword === true ? await passwordProof(context, cluster, root) : {};
  return {
    owner,
    operator: { reason },
    run: (call, isRepeatable) =>
      cluster.run(root, isRepeatable ? SHORT : ONCE, (server) =>
        call({ ...server, unary: { ...server.unary, metadata: withProof(server.unary.metadata, proof) } }),
      ),
  };
}

function withProof(sent: CallOptions["metadata"], proof: Record<string, string>): Metadata {
  const metadata = new Metadata(sent);
  for (const [name, value] of Object.entries(proof)) metadata.set(name, value);
  return metadata;
}

/** The proof of the password for a server; never sent over a readable network (T9). */
async function passwordProof(
  context: ClientContext,
  cluster: Cluster,
  root: string,
): Promise<Record<string, string>> {
  const { address } = await cluster.router.find(root);
  requireSafeForPassword(await context.profile(), address);
  return passwordMetadata(await askPasswordHash(context));
}

/** Prints, for a user, administrators' looks at their trash. */
export function tellLooks(context: ClientContext, looks: readonly OperatorLook[]): void {
  for (const { atMs, by, reason, restoredPath } of looks) {
    const what = restoredPath === "" ? "looked at the names in your trash" : `brought ${restoredPath} back`;
    context.note(`${localTime(atMs)}: ${administrator(by)} ${what}: ${reason}`);
  }
}

/** With the password alone servers send no name, as for the console. */
function administrator(by: string): string {
  return by === "administrator" ? "an administrator" : `${by}, an administrator,`;
}

/** The same for programs. */
export function looksJson(looks: readonly OperatorLook[]): string {
  return stringify64(
    looks.map(({ atMs, by, reason, restoredPath }) => ({
      at: timeText(atMs),
      by,
      reason,
      restored_path: restoredPath === "" ? null : restoredPath,
    })),
  );
}
