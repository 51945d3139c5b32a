// `grove ca`: makes and keeps the cluster's own certificate authority (D20).
import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { processTerminal, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { createPrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import {
  AUTHORITY_CERTIFICATE_FILE,
  AUTHORITY_KEY_FILE,
  type Authority,
  createAuthority,
  openAuthority,
  REVOKED_FILE,
} from "#security/authority/authority.ts";
import type { IssuedRecord } from "#security/authority/issued-certificates.ts";
import { readRevoked, revoke } from "#security/authority/revocations.ts";
import { signAgain } from "#security/authority/sign-again.ts";
import { collect, parseDays } from "./flag-values.ts";

interface CaFlags {
  readonly caDir: string;
  readonly json: boolean;
}

interface IssueFlags extends CaFlags {
  readonly out: string;
  readonly host?: readonly string[];
  readonly door?: boolean;
  readonly days: number;
}

interface ListFlags extends CaFlags {
  readonly all: boolean;
}

/** A certificate as `list` shows it. */
interface Listed extends IssuedRecord {
  readonly names: readonly string[];
  readonly daysLeft: number;
  readonly state: "good" | "ended" | "revoked" | "replaced";
}

const EXAMPLES = `
Examples:
  grove ca init -ca_dir /var/lib/grove/ca
  grove ca issue n1 -ca_dir /var/lib/grove/ca -host n1.example.net -out ./n1      for a node that cannot join by itself
  grove ca issue d1 -door -ca_dir /var/lib/grove/ca -out ./d1                     for a door; list and revoke call it d1.door
  grove ca list -ca_dir /var/lib/grove/ca
  grove ca renew n1 -ca_dir /var/lib/grove/ca -out ./n1                           the same key and names, a new end
  grove ca revoke n1 -ca_dir /var/lib/grove/ca                                    n1 may make no control calls any more

Nodes that can reach the MetaServer need none of this but init: see 'grove node token --help'.`;

/** The parser of `grove ca`. */
export function command(terminal: Terminal = processTerminal()): Command {
  const root = new Command("ca")
    .summary("Make and keep the cluster's own certificate authority")
    .description(
      `Make and keep the cluster's own certificate authority: ${AUTHORITY_CERTIFICATE_FILE}, which everybody may read, and ` +
        `${AUTHORITY_KEY_FILE}, which never leaves its folder.`,
    )
    .addHelpText("after", EXAMPLES);
  const add = (name: string, summary: string): Command =>
    root
      .command(name)
      .description(summary)
      .option("--ca-dir <folder>", "the authority's folder", "grove-ca")
      .option("--json", "print JSON", false);
  add("init", "Make the authority; one that is there is never overwritten").action((flags: CaFlags) =>
    init(flags, terminal),
  );
  withIssueFlags(add("issue <id>", "Make a key and a certificate for a server"))
    .option("--host <name>", "DNS name or address under which it is reached; may be repeated", collect)
    .option("--door", "for a door, which calls servers and is none itself", false)
    .action((id: string, flags: IssueFlags) => issue(id, flags, terminal));
  add("list", "Show what was issued, to whom, and for how long it is good")
    .option("--all", "show those that have ended, were revoked or replaced, too", false)
    .action((flags: ListFlags) => list(flags, terminal));
  withIssueFlags(
    add("renew <id>", "Sign a server's certificate again: the same key and names, a new end"),
  ).action((id: string, flags: IssueFlags) => renew(id, flags, terminal));
  add("revoke <id-or-serial>", "Let a certificate make no control calls any more").action(
    (which: string, flags: CaFlags) => revokeCertificate(which, flags, terminal),
  );
  return root;
}

function withIssueFlags(command: Command): Command {
  return command
    .option("--out <folder>", "where the files go", ".")
    .option("--days <days>", "life of the certificate", parseDays, 90);
}

async function init(flags: CaFlags, terminal: Terminal): Promise<void> {
  const authority = await createAuthority(resolve(flags.caDir), { clock: systemClock });
  const facts = {
    folder: authority.folder,
    certificate: authority.certificatePath,
    fingerprint_sha256: authority.fingerprint,
    ends: new Date(authority.notAfterWallMs).toISOString(),
  };
  tell({ flags, terminal }, facts, [
    `made the cluster's authority in ${facts.folder}`,
    `  certificate  ${facts.certificate} (give it to everybody)`,
    `  key          ${join(facts.folder, AUTHORITY_KEY_FILE)} (keep it here, and a copy in a safe place)`,
    `  SHA-256      ${facts.fingerprint_sha256}`,
    `  ends         ${facts.ends.slice(0, 10)}`,
    `Next: grove metaserver -ca_dir ${facts.folder} ..., then 'grove node token' for each node.`,
  ]);
}

async function issue(id: string, flags: IssueFlags, terminal: Terminal): Promise<void> {
  const authority = await openFor(flags);
  const out = resolve(flags.out);
  makePrivateFolder(out);
  const paths = pathsIn(out, checkedNodeId(id));
  if (existsSync(paths.key)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${paths.key} is there already and a key is never overwritten: 'grove ca renew ${id}' signs it again, or give another -out`,
    );
  }
  const addresses = (flags.host ?? []).filter((host) => isIP(host) !== 0);
  const names = (flags.host ?? []).filter((host) => isIP(host) === 0);
  if (flags.door === true && names.length + addresses.length > 0)
    throw new GroveError("BAD_ARGUMENT", "a door's certificate is for clients alone, so it has no -host");
  const issued =
    flags.door === true
      ? await authority.issueDoorCertificate(id)
      : await authority.issueNodeCertificate({ id, names, addresses });
  await createPrivateFile(paths.key, issued.keyPem);
  await writeFileAtomic(paths.certificate, issued.certificatePem, { mode: 0o644 });
  await writeFileAtomic(paths.authority, authority.certificatePem, { mode: 0o644 });
  tellIssued({ flags, terminal }, issued.certificatePem, paths);
}

async function renew(id: string, flags: IssueFlags, terminal: Terminal): Promise<void> {
  const authority = await openFor(flags);
  const newest = (await listed(authority)).find((record) => record.id === id && record.state !== "revoked");
  if (newest === undefined) throw unknownId(id, authority);
  const certificatePem = await signAgain(authority, newest.certificatePem);
  const out = resolve(flags.out);
  makePrivateFolder(out);
  const paths = pathsIn(out, id);
  await writeFileAtomic(paths.certificate, certificatePem, { mode: 0o644 });
  await writeFileAtomic(paths.authority, authority.certificatePem, { mode: 0o644 });
  tellIssued({ flags, terminal }, certificatePem, { ...paths, key: undefined });
}

async function list(flags: ListFlags, terminal: Terminal): Promise<void> {
  const authority = await openFor({ ...flags, days: 90 });
  const records = (await listed(authority)).filter(({ state }) => flags.all || state === "good");
  const document = {
    authority: {
      folder: authority.folder,
      fingerprint_sha256: authority.fingerprint,
      ends: new Date(authority.notAfterWallMs).toISOString(),
      days_left: daysUntil(authority.notAfterWallMs),
    },
    certificates: records.map((record) => ({
      id: record.id,
      serial: record.serial,
      names: record.names,
      issued: new Date(record.notBeforeWallMs).toISOString(),
      ends: new Date(record.notAfterWallMs).toISOString(),
      days_left: record.daysLeft,
      state: record.state,
    })),
  };
  const idWidth = Math.max(4, ...records.map(({ id }) => id.length));
  tell({ flags, terminal }, document, [
    `authority ${authority.folder}: ${document.authority.days_left} days left, SHA-256 ${authority.fingerprint}`,
    ...(records.length === 0 ? ["no certificates that count"] : []),
    ...records.map(
      (record) =>
        `  ${record.id.padEnd(idWidth)}  ${String(record.daysLeft).padStart(4)} days  ${record.state.padEnd(8)}  ` +
        `${record.serial}  ${record.names.join(" ")}`,
    ),
  ]);
}

async function revokeCertificate(which: string, flags: CaFlags, terminal: Terminal): Promise<void> {
  const authority = await openFor({ ...flags, days: 90 });
  const known = await listed(authority);
  const chosen = known.filter(
    ({ id, serial, state }) =>
      state !== "ended" && state !== "revoked" && (id === which || serial === which.toLowerCase()),
  );
  if (chosen.length === 0) throw unknownId(which, authority);
  for (const { serial, id } of chosen) {
    await revoke(
      join(authority.folder, REVOKED_FILE),
      serial,
      `${id} ${new Date(systemClock.wallMs()).toISOString()}`,
    );
  }
  tell({ flags, terminal }, { revoked: chosen.map(({ id, serial }) => ({ id, serial })) }, [
    ...chosen.map(({ id, serial }) => `revoked ${serial} of ${id}`),
    "The MetaServer with this -ca_dir heeds it within seconds. Clients do not ask: stop the node, too.",
  ]);
}

function openFor(flags: { readonly caDir: string; readonly days: number }): Promise<Authority> {
  return openAuthority(resolve(flags.caDir), { clock: systemClock, lifetimeMs: flags.days * DAY_MS });
}

/** All issued certificates, the newest of each id first. */
async function listed(authority: Authority): Promise<Listed[]> {
  const { alternativeNames } = await import("#security/authority/certificate-maker.ts");
  const nowMs = systemClock.wallMs();
  const revoked = await readRevoked(join(authority.folder, REVOKED_FILE));
  const seenKeys = new Set<string>();
  return (await authority.issued.list(nowMs)).map((record) => {
    const { dnsNames, ipAddresses } = alternativeNames(record.certificatePem);
    const { publicKey } = new X509Certificate(record.certificatePem);
    const holder = `${record.id} ${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
    const isReplaced = seenKeys.has(holder);
    seenKeys.add(holder);
    return {
      ...record,
      names: [...dnsNames.filter((name) => !name.endsWith(".cluster.local")), ...ipAddresses],
      daysLeft: daysUntil(record.notAfterWallMs),
      state: stateOf({
        isRevoked: revoked.has(record.serial),
        isEnded: record.notAfterWallMs <= nowMs,
        isReplaced,
      }),
    };
  });
}

function stateOf(facts: Readonly<Record<"isRevoked" | "isEnded" | "isReplaced", boolean>>): Listed["state"] {
  if (facts.isRevoked) return "revoked";
  if (facts.isEnded) return "ended";
  return facts.isReplaced ? "replaced" : "good";
}

function tellIssued(
  to: Listener,
  certificatePem: string,
  paths: { readonly certificate: string; readonly authority: string; readonly key: string | undefined },
): void {
  const { validTo, subjectAltName } = new X509Certificate(certificatePem);
  const ends = new Date(validTo).toISOString();
  tell(to, { ...paths, key: paths.key ?? null, ends, names: subjectAltName }, [
    `certificate  ${paths.certificate}  (until ${ends.slice(0, 10)}; ${subjectAltName ?? ""})`,
    ...(paths.key === undefined
      ? []
      : [`key          ${paths.key}  (a secret: to its server and nowhere else)`]),
    `authority    ${paths.authority}`,
  ]);
}

/** The files of an id; those of a door, which lists call `d1.door`, have the name that it was issued with. */
function pathsIn(folder: string, id: string): { certificate: string; key: string; authority: string } {
  const name = id.replace(/\.door$/, "");
  return {
    certificate: join(folder, `${name}.crt`),
    key: join(folder, `${name}.key`),
    authority: join(folder, AUTHORITY_CERTIFICATE_FILE),
  };
}

function unknownId(which: string, authority: Authority): GroveError {
  return new GroveError(
    "BAD_ARGUMENT",
    `the authority in ${authority.folder} has issued nothing to ${which} that still counts; 'grove ca list -all' shows everything`,
  );
}

/** Where an outcome is told, and in which form. */
interface Listener {
  readonly flags: CaFlags;
  readonly terminal: Terminal;
}

function tell({ flags, terminal }: Listener, document: unknown, lines: readonly string[]): void {
  if (flags.json) sayJson(terminal, document);
  else say(terminal, ...lines);
}

function daysUntil(wallMs: number): number {
  return Math.floor((wallMs - systemClock.wallMs()) / DAY_MS);
}
