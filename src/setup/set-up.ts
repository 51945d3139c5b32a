// One run of `grove init` after its answers: compares, asks, makes what is missing, records, tells.

import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { type Answers, type Role, rolesOf } from "./answers.ts";
import { type Consent, checksums, compare, requireConsent, write } from "./apply.ts";
import { authorityOf, choosePassword, joinNode, type Made, makeConsole, makeDoor } from "./certificates.ts";
import { droppedRoles } from "./dialogue.ts";
import { type Machine, refuseForeignLinks } from "./machine.ts";
import { dataFolders, type PlannedFile, planFiles, unitOf } from "./plan.ts";
import { authorityPem } from "./provider.ts";
import { recordPath, recordText, type SetupRecord } from "./record.ts";

/** Parts of a run. */
export interface SetUp {
  readonly machine: Machine;
  readonly answers: Answers;
  readonly record: SetupRecord | undefined;
  readonly consent: Consent;
  readonly say: (line: string) => void;
}

/** What a run did. */
export interface Done {
  /** True when all was there as the answers say. */
  readonly isNothing: boolean;
}

/** Sets the machine up. Throws BAD_ARGUMENT before the first change where something may not be replaced. */
export async function setUp({ machine, answers: given, record, consent, say }: SetUp): Promise<Done> {
  const roles = rolesOf(given);
  refuseForeignLinks(ownedBy(roles, given));
  const { hash, password } = roles.includes("console")
    ? await choosePassword(given)
    : { hash: given.password_hash ?? "", password: undefined };
  const answers: Answers = { ...given, password_hash: hash, metrics_token: tokenOf(given) };
  const folders = dataFolders(answers);
  const templates = new Map<Role, string>();
  for (const role of roles) templates.set(role, await machine.unitTemplate(unitOf(role)));
  const providerCa = await authorityPem(answers.provider_ca ?? "", record?.answers);
  const plan = (clusterCa: string | undefined): PlannedFile[] =>
    planFiles({ machine, answers, templates, providerCa, clusterCa });
  const isFirst = roles.includes("metaserver");
  // Without an authority yet, whatever cluster.json is there is another one.
  const present = isFirst ? ((await textOf(join(folders.authority, "ca.crt"))) ?? "") : undefined;
  await requireConsent(await compare(plan(present), record), consent);

  const absent = (await Promise.all(ownedBy(roles, answers).map(absentOnes))).flat();
  const made: Made = { made: [], there: [] };
  if (machine.makeUser(folders.top)) made.made.push("user grove, which runs the services");
  await mkdir(folders.top, { recursive: true, mode: 0o755 });
  makePrivateFolder(machine.settings);
  const authority = isFirst ? await authorityOf(answers, made) : undefined;
  if (isFirst) makePrivateFolder(folders.metaserver);
  if (roles.includes("fileserver")) await joinNode(answers, authority, made);
  if (roles.includes("console") && authority !== undefined) {
    await makeConsole(answers, { authority, hash, ...(password === undefined ? {} : { password }), made });
  }
  if (roles.includes("door")) await makeDoor(answers, authority, made);
  const owned = ownedBy(roles, answers);
  await machine.give(owned);
  if (roles.includes("fileserver")) await machine.giveFolder(folders.fileserver);

  const states = await compare(plan(authority?.certificatePem), record);
  const undo = await write(states);
  // A token is good once, so it is not kept.
  const { token: _token, ...kept } = answers;
  // Files of a service that is left out stay known for its return.
  const files = { ...record?.files, ...checksums(states.map(({ file }) => file)) };
  const text = recordText({ answers: kept, files });
  await writeFileAtomic(recordPath(machine.settings), text, { mode: 0o600 });
  const dropped = droppedRoles(record?.answers ?? {}, answers);
  machine.disable(dropped.map(unitOf));
  const isNothing = undo.length === 0 && made.made.length === 0 && dropped.length === 0;
  machine.enable(roles.map(unitOf));

  for (const line of made.there) say(`there:  ${line}`);
  for (const { file, state } of states) if (state === "same") say(`there:  ${file.path}`);
  for (const line of made.made) say(`made:   ${line}`);
  for (const { file, state } of states) {
    if (state !== "same") say(`${state === "new" ? "wrote:  " : "changed:"} ${file.path}`.trimEnd());
  }
  for (const role of dropped) {
    const end = machine.isSystem ? `, and it runs until 'systemctl stop ${unitOf(role)}'` : "";
    say(`off:    ${unitOf(role)}; its settings and data stay${end}`);
  }
  if (machine.isSystem && !isNothing) say(`on:     ${roles.map(unitOf).join(" ")}, with the machine`);
  if (!isNothing) tellUndo(undo, { machine, roles, made: absent, isFresh: record === undefined }, say);
  return { isNothing };
}

function tellUndo(
  undo: readonly string[],
  facts: {
    readonly machine: Machine;
    readonly roles: readonly Role[];
    /** Files and folders with keys that this run has made. */
    readonly made: readonly string[];
    readonly isFresh: boolean;
  },
  say: (line: string) => void,
): void {
  const { machine, roles, made, isFresh } = facts;
  say("To undo this run:");
  if (machine.isSystem && isFresh) say(`  systemctl disable --now ${roles.map(unitOf).join(" ")}`);
  for (const line of undo) say(`  ${line}`);
  if (!isFresh) return;
  say(`  rm ${recordPath(machine.settings)}`);
  // Users' files are not of this run, nor is what an authority or a store has held before it.
  if (made.length > 0) say(`  rm -r ${made.join(" ")}`);
}

/** What the services own; a FileServer's folder may hold millions of files, which are its own already. */
function ownedBy(roles: readonly Role[], answers: Answers): string[] {
  const { metaserver, authority, fileserver, console: console_, door } = dataFolders(answers);
  const paths: Record<Role, readonly string[]> = {
    metaserver: [metaserver, authority],
    fileserver: [join(fileserver, "node.json"), join(fileserver, "tls")],
    console: [console_],
    door: [door],
  };
  return roles.flatMap((role) => paths[role]);
}

/** The path, where nothing is there yet, or an empty folder as the package makes it. */
async function absentOnes(path: string): Promise<string[]> {
  const entries = await readdir(path).catch((error: unknown) =>
    (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : undefined,
  );
  return entries?.length === 0 ? [path] : [];
}

function tokenOf({ metrics_token: given = "" }: Answers): string {
  return given === "" ? randomBytes(24).toString("base64url") : given;
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
