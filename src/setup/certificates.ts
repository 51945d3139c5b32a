// Makes the authority, the certificates and the console's password that are missing; never replaces a key.
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { FILESERVER_PORT } from "#base/limits.ts";
import { formatHostPort } from "#base/node-id.ts";
import { passwordHashes } from "#console/operators/hash-password.ts";
import { joinCluster } from "#metaserver/process/join-cluster.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { joinedTlsPaths, readJoinedNode, writeJoinedNode } from "#security/authority/joined-node.ts";
import { ensureDoorCertificate, ensureNodeCertificate } from "#security/authority/node-certificate-files.ts";
import { certificateEndMs, readTlsMaterial, type TlsPaths } from "#security/authority/tls-material.ts";
import type { Answers } from "./answers.ts";
import { DOOR_FILES, refused } from "./checks.ts";
import { dataFolders, metaserversOf, namesOf } from "./plan.ts";

/** The file in which the console's first password waits for its operator. */
export const FIRST_PASSWORD_FILE = "first-password";

/** What was made, in a line each, and what was there. */
export interface Made {
  readonly made: string[];
  readonly there: string[];
}

/** The cluster's authority: the one that is there, or a new one. */
export async function authorityOf(answers: Answers, made: Made): Promise<Authority> {
  const { authority: folder } = dataFolders(answers);
  const isThere = (await textOf(join(folder, "ca.crt"))) !== undefined;
  const authority = await loadOrCreateAuthority(folder, { clock: systemClock });
  const ends = new Date(authority.notAfterWallMs).toISOString().slice(0, 10);
  (isThere ? made.there : made.made).push(
    `authority ${folder}, until ${ends}, SHA-256 ${authority.fingerprint}`,
  );
  return authority;
}

/** The node's certificate, by the authority here or by a token at the MetaServer. */
export async function joinNode(
  answers: Answers,
  authority: Authority | undefined,
  made: Made,
): Promise<void> {
  const { fileserver: folder } = dataFolders(answers);
  const { id = "", name = "", token = "" } = answers;
  const metaservers = metaserversOf(answers).split(",");
  const advertise = formatHostPort({ host: name, port: FILESERVER_PORT });
  makePrivateFolder(folder);
  const known = await readJoinedNode(folder);
  const paths = joinedTlsPaths(folder);
  const isGood = await readTlsMaterial(paths, systemClock, ["server", "client"]).then(
    () => true,
    () => false,
  );
  const isSame = known?.advertise === advertise && known.metaservers.join() === metaservers.join();
  if (isGood && isSame) {
    made.there.push(`node ${known.id} in ${folder}`);
    return;
  }
  if (authority === undefined) {
    if (token === "") {
      throw refused(
        `${id} is to be reached as ${advertise}, which its certificate does not say: give a new token ` +
          `('grove node token -id ${id}' on the MetaServer's machine)`,
      );
    }
    await joinCluster({
      dataFolder: folder,
      metaservers,
      token,
      id,
      fallbackId: id,
      advertise,
      hosts: [],
      again: true,
      clock: systemClock,
    });
  } else {
    makePrivateFolder(join(folder, "tls"));
    const key = await nodeKey(paths.key);
    const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
    const certificate = await authority.signNodeCertificate(publicKey, { id, ...namesOf(name) });
    await writeFileAtomic(paths.ca, authority.certificatePem, { mode: 0o644 });
    await writeFileAtomic(paths.cert, certificate, { mode: 0o644 });
    await writeJoinedNode(folder, { id, metaservers, advertise });
  }
  made.made.push(`node ${id} in ${folder}, which others reach as ${advertise}`);
}

/** The key that is there, since a node is known by it; else a new one. */
async function nodeKey(path: string): Promise<string> {
  const known = await readPrivateFile(path);
  if (known !== undefined) return known;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  await writePrivateFile(path, pem);
  return pem;
}

/** The hash of the console's password, which may be another one since an earlier run; undefined before the first. */
export async function presentHash(answers: Answers): Promise<string | undefined> {
  const known = await readPrivateFile(join(dataFolders(answers).console, "password"));
  return known?.split("\n", 1)[0];
}

/** The console's password before anything is written: its hash, and the password itself where it is new. */
export async function choosePassword(answers: Answers): Promise<{ hash: string; password?: string }> {
  const known = await presentHash(answers);
  if (known !== undefined) return { hash: known };
  const given = answers.password_hash ?? "";
  if (given !== "") return { hash: given };
  const password = randomBytes(18).toString("base64url");
  return { hash: passwordHashes(password).argon2, password };
}

/** The console's certificate, and its password where there is none. */
export async function makeConsole(
  answers: Answers,
  parts: {
    readonly authority: Authority;
    readonly hash: string;
    readonly password?: string;
    readonly made: Made;
  },
): Promise<void> {
  const { authority, hash, password, made } = parts;
  const { console: folder } = dataFolders(answers);
  makePrivateFolder(folder);
  const request = { id: "console", ...namesOf(answers.name ?? "") };
  await ensureNodeCertificate(authority, folder, request, systemClock);
  const path = join(folder, "password");
  if ((await readPrivateFile(path)) !== undefined) {
    made.there.push(`console's password, as a hash in ${path}`);
    return;
  }
  const first = join(folder, FIRST_PASSWORD_FILE);
  if (password !== undefined) await writePrivateFile(first, `${password}\n`);
  await writePrivateFile(path, `${hash}\n`);
  const where = password === undefined ? `as the hash that was given, in ${path}` : `in ${first}`;
  made.made.push(`console's password ${where}`);
}

/** The door's certificate: by the authority here, or the files that were brought. */
export async function makeDoor(
  answers: Answers,
  authority: Authority | undefined,
  made: Made,
): Promise<void> {
  const { door: folder } = dataFolders(answers);
  makePrivateFolder(folder);
  const before = await textOf(join(folder, "door.crt"));
  if (authority === undefined) {
    const brought = answers.certificates ?? "";
    if (await isNoNewer(folder, brought)) {
      made.there.push(`door's certificate in ${folder}`);
      return;
    }
    for (const name of DOOR_FILES) {
      const target = join(folder, name);
      const source = join(brought, name);
      if (name.endsWith(".key")) await writePrivateFile(target, await readFile(source, "utf8"));
      // Not copied: a link at the target would have another file written over.
      else await writeFileAtomic(target, await readFile(source), { mode: 0o644 });
    }
  } else {
    await ensureDoorCertificate(authority, folder, "door", systemClock);
    await writeFileAtomic(join(folder, "ca.crt"), authority.certificatePem, { mode: 0o644 });
  }
  const isSame = before === (await textOf(join(folder, "door.crt")));
  (isSame ? made.there : made.made).push(`door's certificate in ${folder}`);
}

/**
 * True where the door's own files are good, and those that were brought are the same, older, or gone: the door
 * has had its certificate renewed since. Throws BAD_ARGUMENT when neither can be used.
 */
async function isNoNewer(folder: string, brought: string): Promise<boolean> {
  const own = await readTlsMaterial(doorPaths(folder), systemClock, ["client"]).catch(() => undefined);
  const reading = readTlsMaterial(doorPaths(brought), systemClock, ["client"]);
  if (own === undefined) {
    await reading;
    return false;
  }
  const other = await reading.catch(() => undefined);
  if (other === undefined) return true;
  return own.key === other.key && certificateEndMs(own.cert) >= certificateEndMs(other.cert);
}

function doorPaths(folder: string): TlsPaths {
  const [cert, key, ca] = DOOR_FILES;
  return { cert: join(folder, cert), key: join(folder, key), ca: join(folder, ca) };
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
