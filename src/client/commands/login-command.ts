// The verb `login`: signs in at the identity provider and opens a session at the server of one's root.
import { Command } from "commander";
import { canonicalUsername } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import type { OpenSession } from "#client/connection/file-server-link.ts";
import { StagedSignIn } from "#client/connection/staged-sign-in.ts";
import { readClaims } from "#client/signin/id-token.ts";
import { mockToken } from "#client/signin/mock-token.ts";
import { type Profile, parseAddresses, readClusterFile, resolveProfile } from "#client/signin/profile.ts";
import { ClientError, isClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { readFirstLine } from "#client/terminal/prompt.ts";

interface LoginFlags extends ClientFlags {
  readonly cluster?: string;
  readonly browser: boolean;
  readonly tokenStdin?: boolean;
  readonly mock?: string | true;
  readonly idpCa?: string;
  readonly rememberIdToken?: string | boolean;
}

/** Makes the parser of `grove login`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("login")
      .description("Sign in with your identity provider. Later commands use the session until it ends.")
      .option(
        "--cluster <file>",
        "take the settings of the cluster's cluster.json, from 'grove init' or 'grove up'",
      )
      .option("--no-browser", "print the address and paste what comes of it, without showing it")
      .option("--token-stdin", "read an ID token from standard input")
      .option(
        "--idp-ca <file>",
        "the authority that has signed the identity provider's certificate; kept for later",
      )
      .option("--mock <email>", "sign in as anybody, where the cluster runs in mock mode")
      .option(
        "--remember-id-token [boolean]",
        "keep the ID token until it expires (true by default): without it a lost session needs a new sign-in",
      )
      .option("--no-remember-id-token", "the same as --remember-id-token=false"),
    [
      ["grove login --cluster cluster.json", "the first time, with the cluster's file"],
      ["grove login", "again, at the same cluster"],
      ["grove login --no-browser", "on a machine without a browser"],
      ["grove login --mock alice@example.com", "at a cluster in mock mode"],
    ],
  ).action((flags: LoginFlags) => host.run("login", flags, (context) => login(context, flags)));
}

async function login(context: ClientContext, flags: LoginFlags): Promise<void> {
  const isKept = isRemembered(flags);
  const profile = await chooseProfile(context, flags);
  const token = await obtainToken(context, profile, flags);
  const { email = "", expiresAtMs } = readClaims(token);
  const staged = await StagedSignIn.begin(context, profile, { username: email, idToken: token, expiresAtMs });
  try {
    const { router } = await staged.context.cluster();
    const session = await signInAt(staged.context, (await router.find("")).address);
    const idToken = isKept ? token : undefined;
    await staged.takeOver(session, { username: session.username, idToken, expiresAtMs });
    await tell(context, session);
  } finally {
    await staged.close();
  }
}

/** The cluster's settings: from the named file, else as for every verb; flags override both. */
async function chooseProfile(context: ClientContext, flags: LoginFlags): Promise<Profile> {
  const profile = await foundProfile(context, flags);
  if (flags.idpCa === undefined) return profile;
  const { readProviderAuthority } = await import("#client/signin/provider-trust.ts");
  return { ...profile, idpCa: await readProviderAuthority(flags.idpCa) };
}

async function foundProfile(context: ClientContext, flags: LoginFlags): Promise<Profile> {
  if (flags.cluster === undefined) {
    const profile = await resolveProfile(context.config.profile, flags, context.terminal.env);
    // With only a server named, `--mock` is the only source of the mode.
    return flags.mock === undefined ? profile : { ...profile, mock: true };
  }
  const profile = await readClusterFile(flags.cluster);
  const { metaserver, fileserver } = flags;
  return {
    ...profile,
    ...(metaserver === undefined ? {} : { metaservers: parseAddresses(metaserver) }),
    ...(fileserver === undefined ? {} : { fileserver }),
  };
}

async function obtainToken(context: ClientContext, profile: Profile, flags: LoginFlags): Promise<string> {
  if (flags.mock !== undefined) return mockToken(mockUser(flags.mock));
  const { pastedToken, signInByPaste, signInWithBrowser } = await import("#client/signin/sign-in.ts");
  if (flags.tokenStdin === true) {
    return pastedToken(await readFirstLine(context.terminal.input, context.signal));
  }
  if (profile.mock && profile.idp === undefined) {
    throw new ClientError("USAGE", "this cluster runs in mock mode and has no identity provider", {
      todo: "Say who you are: grove login --mock alice@example.com",
    });
  }
  return flags.browser ? signInWithBrowser(context, profile) : signInByPaste(context, profile);
}

function mockUser(given: string | true): string {
  if (given === true) throw new ClientError("USAGE", "--mock needs an e-mail address");
  return canonicalUsername(given);
}

/** Opens the session, at another server where the first answer leads there. */
async function signInAt(context: ClientContext, address: string): Promise<OpenSession> {
  const cluster = await context.cluster();
  try {
    return await cluster.link(address).signIn();
  } catch (error) {
    if (!isClientError(error, "NETWORK")) throw error;
    // A server that is starting gets the patience of every verb.
    await cluster.run("", { isRepeatable: true, attempts: 4 }, async () => undefined);
    return cluster.link((await cluster.router.find("")).address).open();
  }
}

function isRemembered(flags: LoginFlags): boolean {
  const { rememberIdToken } = flags;
  if (rememberIdToken === undefined || rememberIdToken === true || rememberIdToken === "true") return true;
  if (rememberIdToken === false || rememberIdToken === "false") return false;
  throw new ClientError("USAGE", "--remember-id-token is true or false");
}

async function tell(context: ClientContext, session: OpenSession): Promise<void> {
  if (context.isJson) {
    await context.printJson({
      username: session.username,
      fileserver: session.address,
      root_id: session.rootId,
      expires_at: new Date(session.expiresAtMs).toISOString(),
    });
    return;
  }
  await context.print(
    `Signed in as ${session.username}.`,
    `Your files are on ${session.address}; the session lasts until ${localTime(session.expiresAtMs)}.`,
  );
}
