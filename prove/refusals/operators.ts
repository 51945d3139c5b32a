// Tokens that must be refused at every operators' route of the console, in each place that a token may stand
// in (spec 4.2, 5.8, W-04).
import { hash } from "node:crypto";
import { ADMIN_SESSION_LIFETIME_MS } from "#base/limits.ts";
import { type ConsoleUnderTest, PASSWORD, startTestConsole } from "#console/app/console.fixture.ts";
import type { Campaign } from "#prove/campaign.ts";
import { lifetimeOf } from "#prove/rig-lifetime.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { type Door, mustBeAccepted, mustBeRefused } from "./credential.ts";

const REFUSALS = ["AUTH_REQUIRED"];
/** Fewer would mean that the rig missed routes. */
const ROUTES_AT_LEAST = 15;

/** Number of tokens that this part tries. */
export const OPERATOR_TOKENS = 10;

interface Operation {
  readonly method: string;
  readonly path: string;
}

/** Tries them all. */
export async function tryOperatorTokens(campaign: Campaign): Promise<void> {
  const console = await startTestConsole(lifetimeOf(campaign));
  const operations = await operatorOperations(console);
  if (operations.length < ROUTES_AT_LEAST)
    throw new Error(`only ${operations.length} routes are for operators`);
  const token = await console.signIn();
  const doorsOf = (shown: string): Readonly<Record<string, Door>> =>
    Object.fromEntries(operations.flatMap((operation) => doorsTo(console, operation, shown)));
  await mustBeAccepted(campaign, "operator's token", {
    users: doorsTo(console, { method: "GET", path: "/api/users" }, token)[0]?.[1] ?? notThere,
  });
  const left = await console.signIn();
  await console.ask("/api/auth/logout", { method: "POST", headers: { authorization: `Bearer ${left}` } });
  const ticket = await console.ask("/api/auth/ws-ticket", {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
  });
  const variants: readonly (readonly [string, string])[] = [
    ["empty", ""],
    ["unknown", "0".repeat(64)],
    ["in capitals", token.toUpperCase()],
    ["cut short", token.slice(0, -1)],
    ["its hash", hash("sha256", token, "hex")],
    ["of one who has signed out", left],
    ["the password", encodeURIComponent(PASSWORD)],
    ["the password's hash", adminPasswordHash(PASSWORD)],
    ["a ticket for a socket", (ticket.json as { ticket: string }).ticket],
  ];
  for (const [what, shown] of variants)
    await mustBeRefused(campaign, `operator's token: ${what}`, doorsOf(shown), REFUSALS);
  await mustBeAccepted(campaign, "operator's token", {
    users: doorsTo(console, { method: "GET", path: "/api/users" }, token)[0]?.[1] ?? notThere,
  });
  console.moveTime(ADMIN_SESSION_LIFETIME_MS);
  await mustBeRefused(campaign, "operator's token past its twelve hours", doorsOf(token), REFUSALS);
}

const notThere: Door = () => Promise.resolve("there is no such door");

/**
 * Returns the operations that need an operator, from the console's own description, so that new ones are
 * included.
 */
async function operatorOperations(console: ConsoleUnderTest): Promise<Operation[]> {
  const { paths } = (await console.ask("/api/openapi.json")).json as {
    paths: Record<string, Record<string, unknown>>;
  };
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{[^}]+\}/g, "n1"),
    })),
  );
  const found: Operation[] = [];
  for (const operation of all) {
    const { status } = await console.ask(operation.path, { method: operation.method });
    if (status === 401 && operation.path !== "/api/auth/login") found.push(operation);
  }
  return found;
}

function doorsTo(console: ConsoleUnderTest, { method, path }: Operation, token: string): [string, Door][] {
  const places: readonly (readonly [string, string, Readonly<Record<string, string>>])[] = [
    ["header", path, { authorization: `Bearer ${token}` }],
    ["cookie", path, { cookie: `svc_admin_token=${token}` }],
    ["query", `${path}?token=${token}`, {}],
  ];
  return places.map(([place, url, headers]) => [
    `${method} ${path} by ${place}`,
    async () => {
      const answer = await console.ask(url, { method, headers });
      return answer.status < 400 ? undefined : (answer.problem?.code ?? String(answer.status));
    },
  ]);
}
