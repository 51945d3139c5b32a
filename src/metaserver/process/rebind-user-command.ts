// `grove user rebind|remap|rename|renames`: other persons behind addresses, other addresses of persons (D21, D34).
import { readFile } from "node:fs/promises";
import { type Command, InvalidArgumentError } from "commander";
import { ISSUER_MAX_LENGTH, SUBJECTS_LISTED_MAX } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { canonicalUsername } from "#base/names.ts";
import { bareIssuer } from "#base/verified-identity.ts";
import { askTyped } from "#client/terminal/prompt.ts";
import { say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import type { ChangeUnderWay, SubjectRecord, WantedChange } from "#metaserver/directory/subject.ts";
import { bad } from "./move-orders.ts";
import { type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";
import {
  isSubject,
  parseDomains,
  parsePairs,
  planRemap,
  type RemapBy,
  type RemapPlan,
} from "./subject-remap.ts";

interface RebindFlags extends StoreFlags {
  readonly issuer: string;
  readonly subject: string;
}

interface RemapFlags extends StoreFlags {
  readonly fromIssuer: string;
  readonly toIssuer: string;
  readonly by?: string;
  readonly domains?: string;
  readonly pairs?: string;
  readonly administrators?: string;
  readonly apply: boolean;
}

/** Adds the verbs to `grove user`. */
export function addRebindVerbs(group: Command, terminal: Terminal): void {
  withStore(
    group
      .command("rebind")
      .summary("Put another account of an identity provider behind one address")
      .description(
        "Put another account of an identity provider behind one address, on the host of the metadata store: the user keeps the files and " +
          "is signed out everywhere.",
      )
      .argument("<email>", "the address", parseEmail),
  )
    .requiredOption("--issuer <url>", "the identity provider, as its tokens name it", parseIssuer)
    .requiredOption("--subject <sub>", "the account there: claim sub of its tokens", parseSubject)
    .action((email: string, flags: RebindFlags) => rebind(email, flags, terminal));
  withStore(
    group
      .command("remap")
      .summary("Move users over to another identity provider")
      .description(
        "Move users over to another identity provider, on the host of the metadata store. Shows who would, and changes nothing without -apply. " +
          "Administrators and disabled users stay: 'grove user rebind' moves one.",
      ),
  )
    .requiredOption("--from-issuer <url>", "the provider before, as its tokens name it", parseIssuer)
    .requiredOption("--to-issuer <url>", "the provider from now on", parseIssuer)
    .option("--pairs <file>", "confirmed pairs, a line each: OLD_SUBJECT,NEW_SUBJECT")
    .option(
      "--by <what>",
      "'email': the first who comes from the new provider with the address; needs -domains",
    )
    .option("--domains <list>", "domains whose addresses are the new provider's own, with commas")
    .option("--administrators <list>", "addresses of administrators, or 'none' (default: SVC_ADMIN_EMAIL)")
    .option("--apply", "do it; asks for the number of users", false)
    .action((flags: RemapFlags) => remap(flags, terminal));
}

async function rebind(email: string, flags: RebindFlags, terminal: Terminal): Promise<void> {
  await withNodes(flags, async (store) => {
    const known = await store.findSubject(email);
    if (known === undefined)
      throw bad(
        `${email} is nobody's yet: whoever signs in with it first has it, and nothing needs to be changed`,
      );
    const to = { issuer: bareIssuer(flags.issuer), subject: flags.subject };
    if (known.issuer === to.issuer && known.subject === to.subject)
      throw bad(`${email} is that account's already`);
    await store.rebindSubjects([{ username: email, from: known, to }]);
    const away = await nodesAway(store);
    if (flags.json)
      return sayJson(terminal, { username: email, before: shown(known), now: to, nodes_away: away });
    say(
      terminal,
      `${email} is the account ${to.subject} of ${to.issuer} from now on, and no longer ${accountOf(known)}.`,
      heardBy(away),
    );
  });
}

async function remap(flags: RemapFlags, terminal: Terminal): Promise<void> {
  if (bareIssuer(flags.fromIssuer) === bareIssuer(flags.toIssuer))
    throw bad("both providers are the same one");
  const how = await howOf(flags);
  const administrators = administratorsOf(flags, terminal);
  await withNodes(flags, async (store) => {
    const users = await usersOf(store, bareIssuer(flags.fromIssuer));
    const disabled = new Set(
      (await store.userStates()).filter((state) => state.disabled).map(({ username }) => username),
    );
    const request = { toIssuer: flags.toIssuer, how, administrators, disabled };
    const plan = planRemap(users, request);
    if (!flags.json) say(terminal, ...linesOf(plan));
    if (!flags.apply) {
      if (flags.json) sayJson(terminal, documentOf(plan, false));
      else say(terminal, "Nothing was changed. To do it, type the same with -apply.");
      return;
    }
    if (plan.matched.length === 0) throw bad("no user would go over; nothing was changed");
    await confirm(plan.matched.length, terminal);
    await store.rebindSubjects(plan.matched);
    if (flags.json) return sayJson(terminal, documentOf(plan, true));
    say(terminal, `${counted(plan.matched.length)} went over.`, heardBy(await nodesAway(store)));
  });
}

async function howOf({ pairs, by, domains }: RemapFlags): Promise<RemapBy> {
  if ((pairs === undefined) === (by === undefined))
    throw bad("say how users are matched: -pairs FILE, or -by email");
  if (pairs !== undefined) {
    if (domains !== undefined) throw bad("-domains goes with -by email");
    return { by: "pairs", subjects: parsePairs(await readFile(pairs, "utf8")) };
  }
  if (by !== "email") throw bad("-by is 'email'");
  if (domains === undefined) {
    throw bad(
      "-by email needs -domains: whose addresses nobody but the new provider gives out, such as example.com",
    );
  }
  return { by: "email", domains: parseDomains(domains) };
}

/** The administrators' addresses, which the flags must state so that none is rebound by mistake. */
function administratorsOf({ administrators }: RemapFlags, { env }: Terminal): Set<string> {
  const text = administrators ?? env["SVC_ADMIN_EMAIL"] ?? "";
  if (text === "")
    throw bad("say who administrators are: -administrators a@example.com,b@example.com, or 'none'");
  if (text === "none") return new Set();
  return new Set(text.split(",").map((email) => canonicalUsername(email.trim())));
}

async function usersOf(store: NodeStore, issuer: string): Promise<SubjectRecord[]> {
  const users: SubjectRecord[] = [];
  for (;;) {
    const page = await store.subjectsOf(issuer, users.at(-1)?.username);
    users.push(...page);
    if (page.length < SUBJECTS_LISTED_MAX) return users;
  }
}

function* linesOf({ matched, left }: RemapPlan): Generator<string> {
  for (const { username, from, to } of matched) {
    const account =
      to.subject === "" ? `the first who comes from ${to.issuer} with this address` : accountOf(to);
    yield `  ${username}  ${from.subject} -> ${account}`;
  }
  for (const { username, why } of left) yield `  ${username}  stays: ${why}`;
  const stay = left.length === 1 ? "1 stays" : `${left.length} stay`;
  yield `${counted(matched.length)} would go over, ${stay}.`;
}

function documentOf({ matched, left }: RemapPlan, applied: boolean): Record<string, unknown> {
  const users = matched.map(({ username, from, to }) => ({ username, before: shown(from), now: shown(to) }));
  return { applied, matched: users, left };
}

/** Asks the operator for the number of users to rebind. Throws BAD_ARGUMENT for another number. */
async function confirm(count: number, terminal: Terminal): Promise<void> {
  const typed = await askTyped(terminal, "They are signed out everywhere. Type their number to go on: ");
  if (typed !== String(count)) throw bad("that is not their number; nothing was changed");
}

async function nodesAway(store: NodeStore): Promise<string[]> {
  return (await store.nodes()).filter(({ live }) => !live).map(({ fsId }) => fsId);
}

function heardBy(away: readonly string[]): string {
  const others =
    away.length === 0
      ? ""
      : ` Not running: ${away.join(", ")}; they hear of it when they reach a MetaServer, and know the account before until then.`;
  return `FileServers that run hear of it within 5 s, end the sessions, and take the new account.${others}`;
}

const shown = ({ issuer, subject }: { readonly issuer: string; readonly subject: string }): object => ({
  issuer,
  subject: subject === "" ? null : subject,
});

function accountOf({ issuer, subject }: { readonly issuer: string; readonly subject: string }): string {
  return `the account ${subject} of ${issuer}`;
}

function counted(count: number): string {
  return count === 1 ? "1 user" : `${count} users`;
}

function parseEmail(text: string): string {
  try {
    return canonicalUsername(text);
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function parseIssuer(text: string): string {
  if (/^[\u0021-\u007e]+$/.test(text) && text.length <= ISSUER_MAX_LENGTH) return text;
  throw new InvalidArgumentError("write it as the provider's tokens do.");
}

function parseSubject(text: string): string {
  if (isSubject(text)) return text;
  throw new InvalidArgumentError("write it as the provider's tokens do.");
}

interface RenameFlags extends StoreFlags {
  readonly confirm: boolean;
  readonly refuse: boolean;
}

/** Adds the verbs about people with a new address. */
export function addRenameVerbs(group: Command, terminal: Terminal): void {
  withStore(
    group
      .command("renames")
      .summary("List people who have a new address")
      .description(
        "List people who have signed in under another address than they are known by, on the host of the metadata store: each waits for " +
          "'grove user rename'. Below them, changes that some FileServer has not carried out yet.",
      ),
  ).action((flags: StoreFlags) => list(flags, terminal));
  withStore(
    group
      .command("rename")
      .summary("Confirm or refuse the new address of a person")
      .description(
        "Confirm or refuse the new address of a person, on the host of the metadata store. The same account of the identity provider has come " +
          "under another address: root, quota, trash, shares, links, groups and app passwords go along. Changes nothing without -confirm or -refuse.",
      )
      .argument("<old>", "the address by which the person is known", parseEmail)
      .argument("<new>", "the one under which they have signed in", parseEmail),
  )
    .option("--confirm", "do it: their sessions end, and the old address is free for somebody else", false)
    .option("--refuse", "forget it; they may come again", false)
    .action((from: string, to: string, flags: RenameFlags) => rename(from, to, flags, terminal));
}

async function list(flags: StoreFlags, terminal: Terminal): Promise<void> {
  await withNodes(flags, async (store) => {
    const [wanted, underWay] = [await store.wantedChanges(), await store.changesUnderWay()];
    if (flags.json) {
      sayJson(terminal, { waiting: wanted.map(waitingDocument), under_way: underWay.map(underWayDocument) });
      return;
    }
    const lines = [...wanted.map(waitingLine), ...underWay.map(underWayLine)];
    say(terminal, ...(lines.length === 0 ? ["Nobody waits for a new address."] : lines));
  });
}

async function rename(from: string, to: string, flags: RenameFlags, terminal: Terminal): Promise<void> {
  if (flags.confirm && flags.refuse) throw bad("say either -confirm or -refuse");
  if (flags.confirm && from === terminal.env["SVC_ADMIN_EMAIL"]?.toLowerCase())
    throw bad(
      `${from} is the administrator: set SVC_ADMIN_EMAIL to ${to} on all servers first, or whoever gets that address is one`,
    );
  await withNodes(flags, async (store) => {
    if (flags.refuse) {
      if (!(await store.refuseAddress(from, to))) throw bad(`nobody known as ${from} has signed in as ${to}`);
      if (flags.json) sayJson(terminal, { old: from, new: to, outcome: "refused" });
      else say(terminal, `${from} stays ${from}. Whoever has come as ${to} is refused.`);
      return;
    }
    if (!flags.confirm) {
      const wanted = (await store.wantedChanges()).find((one) => one.from === from && one.to === to);
      if (wanted === undefined) throw bad(`nobody known as ${from} has signed in as ${to}`);
      if (flags.json) sayJson(terminal, { ...waitingDocument(wanted), outcome: "unchanged" });
      else
        say(
          terminal,
          waitingLine(wanted),
          "Nothing was changed. If you know that it is the same person, type the same with -confirm; otherwise with -refuse.",
        );
      return;
    }
    const { version } = await store.changeAddress(from, to);
    const waitsFor =
      (await store.changesUnderWay()).find((change) => change.version === version)?.waitsFor ?? [];
    if (flags.json) sayJson(terminal, { old: from, new: to, outcome: "changed", waits_for: waitsFor });
    else
      say(
        terminal,
        `${from} is ${to} from now on, with everything that was theirs. FileServers carry it out within 5 s, those that do not run when they ` +
          `come back; until all have, nobody else gets in as ${from}. 'grove user renames' shows which have not.`,
      );
  });
}

function waitingLine({ from, to, issuer, subject, lastMs }: WantedChange): string {
  return `  ${from} -> ${to}  the account ${subject} of ${issuer}, last seen ${when(lastMs)}`;
}

function waitingDocument({ from, to, issuer, subject, firstMs, lastMs }: WantedChange): object {
  return { old: from, new: to, issuer, subject, first_seen: when(firstMs), last_seen: when(lastMs) };
}

function underWayLine({ former, username, waitsFor }: ChangeUnderWay): string {
  return `  ${former} -> ${username}  confirmed; ${waitsFor.join(", ")} ${waitsFor.length === 1 ? "has" : "have"} yet to carry it out`;
}

function underWayDocument({ former, username, waitsFor }: ChangeUnderWay): object {
  return { old: former, new: username, waits_for: waitsFor };
}

function when(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
