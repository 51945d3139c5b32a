// Checks a client's machine: settings, servers, certificates, clock, provider, sign-in.
import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { systemClock } from "#base/clock.ts";
import { errorText } from "#base/log.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { explain } from "#client/connection/error-text.ts";
import { findPortOwner } from "#client/signin/port-owner.ts";
import type { Profile } from "#client/signin/profile.ts";
import { NAME_THE_AUTHORITY, providerFetch } from "#client/signin/provider-trust.ts";
import { isPlain } from "#client/signin/server-address.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { servedCertificateCheck } from "./certificates.ts";
import { clockFinding } from "./clock-finding.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";
import { providerChecks } from "./provider-checks.ts";
import { serverCheck } from "./server-probe.ts";

const CHOOSE =
  "Sign in with the cluster's file (grove login --cluster FILE), or name its metaserver (--metaserver HOST:PORT).";

/** The checks of this machine as a client of the cluster that flags, environment and profile name. */
export async function clientChecks(context: ClientContext, idpCa?: string): Promise<Check[]> {
  let profile: Profile;
  try {
    const found = await context.profile();
    profile = idpCa === undefined ? found : { ...found, idpCa };
  } catch (error) {
    const { what, todo } = explain(error);
    return [fixed(failed("settings", what, todo))];
  }
  const servers = profile.fileserver === undefined ? profile.metaservers : [];
  if (servers.length === 0 && profile.fileserver === undefined) {
    return [fixed(failed("settings", "it is not known which cluster you use", CHOOSE))];
  }
  const sessions = await context.sessions.listSessions().catch(() => []);
  const fileservers = [
    ...new Set([
      ...(profile.fileserver === undefined ? [] : [profile.fileserver]),
      ...sessions.map(({ address }) => address),
    ]),
  ];
  const certificates = isPlain(profile)
    ? [
        fixed(
          warning(
            "TLS",
            "the cluster is a mock one: what you send can be read on the way",
            "Use it for trials only.",
          ),
        ),
      ]
    : [...servers, ...fileservers].map((address) =>
        servedCertificateCheck(address, profile.ca, () => systemClock.wallMs()),
      );
  return [
    settingsCheck(context, profile),
    ...servers.map((address) => serverCheck("metaserver", address, MetaServer.typeName, profile)),
    ...fileservers.map((address) => serverCheck("fileserver", address, FileServer.typeName, profile)),
    ...certificates,
    ...signInChecks(context, profile),
    sessionCheck(context),
  ];
}

function settingsCheck(context: ClientContext, profile: Profile): Check {
  const name = "settings";
  return {
    name,
    async run() {
      const { path, profile: file, credentials } = context.config;
      const open = await Promise.all([file, credentials].map(isOpenToOthers));
      if (open.includes(true)) {
        return [
          failed(
            name,
            `others on this machine may read what is in ${path}`,
            `Make it yours alone: chmod -R go= '${path}'`,
          ),
        ];
      }
      const cluster = profile.fileserver ?? profile.metaservers.join(", ");
      return [ok(name, `your files in ${path} are yours alone; the cluster is ${cluster}`)];
    },
  };
}

async function isOpenToOthers(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && (found.mode & 0o077) !== 0;
}

/** Checks the requirements of a new sign-in. */
function signInChecks(context: ClientContext, profile: Profile): Check[] {
  if (profile.mock) return [];
  const { idp } = profile;
  if (idp === undefined || (idp.issuer === undefined && idp.authUrl === undefined)) {
    return [fixed(failed("identity provider", "it is not known where to sign in", CHOOSE))];
  }
  const { issuer, authUrl, tokenUrl, clientId } = idp;
  const client =
    clientId === undefined
      ? failed(
          "client id",
          "is not known, so nobody can sign in",
          "Set IDP_CLIENT_ID, or sign in with the cluster's file.",
        )
      : ok("client id", "is set");
  const asker = { fetch: providerFetch(profile), nameAuthority: NAME_THE_AUTHORITY };
  return [...providerChecks({ issuer, authUrl, tokenUrl }, asker), fixed(client), redirectCheck(context)];
}

/** Checks whether the sign-in can listen for the browser's answer (T19). */
function redirectCheck(context: ClientContext): Check {
  const name = "sign-in's port";
  return {
    name,
    async run() {
      const { hostname, port } = new URL(readIdentitySettings(context.terminal.env).redirectUri);
      if (!["localhost", "127.0.0.1", "[::1]"].includes(hostname)) {
        return [
          warning(
            name,
            "the redirect does not lead to this machine",
            "You will be asked to paste the browser's address.",
          ),
        ];
      }
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen(Number(port || "80"), "127.0.0.1", () => server.close(() => resolve(true)));
      if (await promise) return [ok(name, `${port} is free`)];
      const owner = findPortOwner(Number(port));
      const who = owner === undefined ? "another process" : `${owner.name} (process ${owner.pid})`;
      return [
        warning(
          name,
          `${port} is taken by ${who}`,
          "End that one, or paste the browser's address when you sign in.",
        ),
      ];
    },
  };
}

/** Checks the session at the server that holds one's root, and that server's clock. */
function sessionCheck(context: ClientContext): Check {
  const name = "session";
  return {
    name,
    async run() {
      const identity = await context.identity.current();
      if (identity === undefined) return [warning(name, "nobody is signed in", "Sign in: grove login")];
      const cluster = await context.cluster();
      const startMs = systemClock.wallMs();
      try {
        const { address, reply } = await cluster.run("", { ...SHORT, attempts: 1 }, async (server) => ({
          address: server.address,
          reply: await server.files.explain({ path: "/" }, server.unary),
        }));
        // The server read its clock somewhere between our two readings.
        const middleMs = (startMs + systemClock.wallMs()) / 2;
        const findings: Finding[] = [ok(name, `you are ${reply.username} on ${address}`)];
        if (reply.nowMs !== 0n)
          findings.push(clockFinding(`clock of ${address}`, Number(reply.nowMs) - middleMs));
        return findings;
      } catch (error) {
        const { what, todo } = explain(error);
        return [
          failed(name, `you are ${identity.username}, but: ${what === "" ? errorText(error) : what}`, todo),
        ];
      }
    },
  };
}

/** A check with a known outcome. */
export function fixed(finding: Finding): Check {
  return { name: finding.name, run: () => Promise.resolve([finding]) };
}
