// Resolves the cluster's settings: flags first, then the environment, then `grove login`'s profile.
import { readFile } from "node:fs/promises";
import { METASERVER_PORT } from "#base/limits.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { SETTINGS_FILE_MAX_BYTES } from "#client/terminal/limits.ts";
import { parseFields, readStoredOrDamaged, type StoredFields, writeStored } from "./stored-json.ts";

/** How to reach the identity provider (spec 5.1, decision D23). */
export interface IdpProfile {
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly authUrl: string | undefined;
  readonly tokenUrl: string | undefined;
}

/** The settings of one cluster. */
export interface Profile {
  /** host:port of each MetaServer. */
  readonly metaservers: readonly string[];
  /** PEM of the authority that signed the servers' certificates; undefined trusts what the system trusts. */
  readonly ca: string | undefined;
  /** A door's own certificate and key, PEM, which it shows to servers; undefined for everybody else. */
  readonly certificate?: { readonly cert: string; readonly key: string } | undefined;
  /** True for a cluster that accepts mock tokens; without an authority its calls use no TLS (spec 5.7). */
  readonly mock: boolean;
  readonly idp: IdpProfile | undefined;
  /** PEM of the identity provider's authority; undefined trusts public ones and the cluster's. */
  readonly idpCa?: string | undefined;
  /** host:port of a FileServer that is asked directly, without a MetaServer. */
  readonly fileserver: string | undefined;
}

/** The flags that every verb has. */
export interface ConnectionFlags {
  readonly metaserver?: string | undefined;
  readonly fileserver?: string | undefined;
  readonly ca?: string | undefined;
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Merges flags, environment and profile file (D23). Reads the file of `-ca` or SVC_CLUSTER_CA. Rejects with LOCAL_FILE
 * for a damaged profile: without its authority and its mode, servers would be asked in another way than they speak.
 */
export async function resolveProfile(path: string, flags: ConnectionFlags, env: Env): Promise<Profile> {
  const fromFile = await readProfile(path);
  const metaserver = flags.metaserver ?? nonEmpty(env["SVC_METASERVER"]);
  const caFile = flags.ca ?? nonEmpty(env["SVC_CLUSTER_CA"]);
  const mockWord = env["SVC_AUTH_MOCK"];
  return {
    metaservers: metaserver === undefined ? (fromFile?.metaservers ?? []) : parseAddresses(metaserver),
    ca: caFile === undefined ? fromFile?.ca : await readSettingsFile(caFile),
    mock: mockWord === undefined || mockWord === "" ? (fromFile?.mock ?? false) : isMockWord(mockWord),
    idp: idpOf(env, fromFile?.idp),
    idpCa: fromFile?.idpCa,
    fileserver: flags.fileserver === undefined ? fromFile?.fileserver : parseAddress(flags.fileserver),
  };
}

/** Reads the `cluster.json` that `grove up` writes, as a profile (decision D23). */
export async function readClusterFile(path: string): Promise<Profile> {
  const fields = parseFields(await readSettingsFile(path));
  const metaserver = fields?.text("metaserver");
  if (fields === undefined || metaserver === undefined) {
    throw new ClientError("USAGE", "is not a cluster file: it names no metaserver", {
      about: path,
      todo: "Give the cluster.json of 'grove init' or 'grove up'.",
    });
  }
  const caFile = fields.text("ca");
  const idpCaFile = fields.text("idp_ca");
  const idp = fields.fields("idp");
  return {
    metaservers: parseAddresses(metaserver),
    ca: caFile === undefined ? fields.text("ca_pem") : await readSettingsFile(caFile),
    mock: fields.flag("mock"),
    idp: idp === undefined ? undefined : idpFields(idp),
    idpCa: idpCaFile === undefined ? fields.text("idp_ca_pem") : await readSettingsFile(idpCaFile),
    fileserver: undefined,
  };
}

/** Writes the profile that later commands read (0600). */
export async function writeProfile(path: string, profile: Profile): Promise<void> {
  const { idp } = profile;
  await writeStored(path, {
    metaservers: profile.metaservers,
    ...(profile.fileserver === undefined ? {} : { fileserver: profile.fileserver }),
    ...(profile.ca === undefined ? {} : { ca_pem: profile.ca }),
    ...(profile.idpCa === undefined ? {} : { idp_ca_pem: profile.idpCa }),
    mock: profile.mock,
    ...(idp === undefined
      ? {}
      : {
          idp: {
            issuer: idp.issuer,
            client_id: idp.clientId,
            auth_url: idp.authUrl,
            token_url: idp.tokenUrl,
          },
        }),
  });
}

async function readProfile(path: string): Promise<Profile | undefined> {
  const stored = await readStoredOrDamaged(path);
  if (stored === undefined) return undefined;
  const profile = stored === "damaged" ? undefined : profileOf(stored);
  // Each sign-in stores at least one server.
  if (profile !== undefined && (profile.metaservers.length > 0 || profile.fileserver !== undefined))
    return profile;
  throw new ClientError("LOCAL_FILE", "is damaged, so that nobody knows how to reach the cluster", {
    about: path,
    todo: "Sign in with the cluster's file, which writes it anew: grove login --cluster cluster.json",
  });
}

function profileOf(stored: StoredFields): Profile {
  const idp = stored.fields("idp");
  return {
    metaservers: stored.texts("metaservers"),
    ca: stored.text("ca_pem"),
    mock: stored.flag("mock"),
    idp: idp === undefined ? undefined : idpFields(idp),
    idpCa: stored.text("idp_ca_pem"),
    fileserver: stored.text("fileserver"),
  };
}

function idpFields(fields: StoredFields): IdpProfile {
  return {
    issuer: fields.text("issuer"),
    clientId: fields.text("client_id"),
    authUrl: fields.text("auth_url"),
    tokenUrl: fields.text("token_url"),
  };
}

/** The provider of the environment, completed from the profile's. */
function idpOf(env: Env, stored: IdpProfile | undefined): IdpProfile | undefined {
  const issuer = nonEmpty(env["IDP_ISSUER"]);
  const idp: IdpProfile = {
    issuer: issuer ?? stored?.issuer,
    clientId: nonEmpty(env["IDP_CLIENT_ID"]) ?? stored?.clientId,
    // Another issuer's addresses do not belong to this one.
    authUrl: nonEmpty(env["IDP_AUTH_URL"]) ?? (issuer === undefined ? stored?.authUrl : undefined),
    tokenUrl: nonEmpty(env["IDP_TOKEN_URL"]) ?? (issuer === undefined ? stored?.tokenUrl : undefined),
  };
  return Object.values(idp).every((value) => value === undefined) ? undefined : idp;
}

/** `host:port[,host:port…]`; a port left out is the MetaServer's own (decision D23). */
export function parseAddresses(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => parseAddress(part, METASERVER_PORT));
}

/** Checks one `host:port` or `[v6]:port`. Throws USAGE. */
export function parseAddress(text: string, defaultPort?: number): string {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  if (match?.[1] === undefined || port === undefined || port < 1 || port > 65_535) {
    throw new ClientError("USAGE", `${JSON.stringify(text)} is not an address`, {
      todo: "Write it as host:port, an IPv6 address in brackets.",
    });
  }
  return `${match[1]}:${port}`;
}

/** Reads a settings file that the user names: a cluster file, a certificate. */
export async function readSettingsFile(path: string): Promise<string> {
  try {
    const content = await readFile(path);
    if (content.length > SETTINGS_FILE_MAX_BYTES)
      throw new ClientError("USAGE", "is too large", { about: path });
    return content.toString("utf8");
  } catch (error) {
    throw localFailure(error, path);
  }
}

/** Only these two words switch mock mode on (failure C-06). */
function isMockWord(word: string): boolean {
  return word === "true" || word === "1";
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
