// A MetaServer with an authority over real TLS, and helpers to join it, for tests of joining and renewing.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { type Authority, createAuthority } from "#security/authority/authority.ts";
import { JoinTokens } from "#security/authority/join-tokens.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { GrpcChannelOptions } from "#wire/grpc/client.ts";
import { type MetaCertificates, openCertificates } from "./certificates.ts";
import { joinCluster } from "./join-cluster.ts";
import { type MetaServerUnderTest, startForTest } from "./meta-server.fixture.ts";

/** Joining opens many connections; busy machines take long. */
export const TIMEOUT: { readonly timeout: number } = { timeout: 60_000 };
/** Milliseconds. */
export const HOUR_MS: number = 3_600_000;
type Tls = NonNullable<GrpcChannelOptions["tls"]>;

/** A MetaServer with an authority, and helpers to join it. */
export interface Cluster extends MetaServerUnderTest {
  readonly folder: string;
  readonly authority: Authority;
  readonly tokens: JoinTokens;
  readonly certificates: MetaCertificates;
  token(id?: string): Promise<string>;
  /** Joins as an operator does, into a folder of its own. */
  join(
    token: string,
    options?: { id?: string; data?: string; hosts?: string[]; advertise?: string; again?: boolean },
  ): Promise<Tls & { readonly folder: string; readonly id: string }>;
}

/** Starts one over TLS, in a folder that the test's end removes. */
export async function startCluster(
  t: TestContext,
  options: { readonly takesMockTokens?: boolean } = {},
): Promise<Cluster> {
  const folder = scratchFolder("metaserver-");
  const clock = new ManualClock(Date.now());
  await createAuthority(join(folder, "ca"), { clock });
  const certificates = await openCertificates(
    {
      caDir: join(folder, "ca"),
      certDays: 90,
      id: "metaserver",
      listen: "127.0.0.1:0",
      advertise: "meta.example.net:50050",
    },
    join(folder, "meta"),
    { clock, log: silentLogger, random: () => 0 },
  );
  t.after(() => certificates.close());
  const tokenVerifier =
    options.takesMockTokens === true
      ? createTokenVerifier({ clientId: "grove", mock: true, clock })
      : undefined;
  const doorTokens =
    options.takesMockTokens === true
      ? createTokenVerifier({ clientId: "grove-door", mock: true, clock })
      : undefined;
  const server = await startForTest(t, {
    clock,
    certificates,
    ...(tokenVerifier && { tokenVerifier }),
    ...(doorTokens && { doorTokens }),
  });
  const { authority } = certificates;
  assert.ok(authority);
  const tokens = new JoinTokens(authority.folder, clock);
  let count = 0;
  return {
    ...server,
    folder,
    authority,
    tokens,
    certificates,
    token: (id) => tokens.make({ fingerprint: authority.fingerprint, id, lifetimeMs: HOUR_MS }),
    async join(token, options = {}) {
      const dataFolder = options.data ?? join(folder, `data-${++count}`);
      const joined = await joinCluster({
        dataFolder,
        metaservers: [`localhost:${server.port}`],
        token,
        id: options.id,
        fallbackId: "fallback",
        advertise: options.advertise,
        hosts: options.hosts ?? [],
        again: options.again ?? false,
        clock,
      });
      const [cert, key, ca] = await Promise.all(
        [joined.paths.cert, joined.paths.key, joined.paths.ca].map((path) => readFile(path, "utf8")),
      );
      assert.ok(cert !== undefined && key !== undefined && ca !== undefined);
      return { cert, key, ca, folder: dataFolder, id: joined.id };
    },
  };
}

/** Matches an error by its code, and its text where one is given. */
export const has =
  (code: ErrorCode, text?: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(isGroveError(error, code), String(error));
    if (text !== undefined) assert.match(error.message, text);
    return true;
  };
