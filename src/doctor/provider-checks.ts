// Checks the identity provider for sign-ins: its discovery document, or its addresses.
import { systemClock } from "#base/clock.ts";
import { errorText } from "#base/log.ts";
import { isUntrusted } from "#client/signin/provider-trust.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import { clockFinding } from "./clock-finding.ts";
import { type Check, type Finding, failed, ok } from "./finding.ts";
import { getJson } from "./server-probe.ts";

/** The configured addresses of an identity provider. */
export interface ProviderAddresses {
  readonly issuer?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly tokenUrl?: string | undefined;
  readonly tokeninfoUrl?: string | undefined;
}

const TODO = "Check the address and the network.";

/** Calls the provider, with the hint for an untrusted certificate. */
export interface ProviderAsker {
  readonly fetch: Fetch;
  readonly nameAuthority: string;
}

/**
 * Checks the configured parts of a provider: an issuer's discovery and clock, and answers of other addresses.
 */
export function providerChecks(
  addresses: ProviderAddresses,
  asker: ProviderAsker = { fetch, nameAuthority: TODO },
): Check[] {
  const { issuer, authUrl, tokenUrl, tokeninfoUrl } = addresses;
  return [
    ...(issuer === undefined ? [] : [discoveryCheck(issuer, asker)]),
    ...(
      [
        ["sign-in page", authUrl],
        ["token address", tokenUrl],
        ["tokeninfo address", tokeninfoUrl],
      ] as const
    ).flatMap(([what, url]) =>
      url === undefined ? [] : [reachCheck(`identity provider's ${what}`, url, asker)],
    ),
  ];
}

function discoveryCheck(issuer: string, asker: ProviderAsker): Check {
  const name = "identity provider";
  return {
    name,
    async run(signal) {
      try {
        const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
        const { status, body, dateMs } = await getJson(url, signal, undefined, asker.fetch);
        if (status !== 200) return [failed(name, `answers its discovery with status ${status}`, TODO)];
        if (body["issuer"] !== issuer) {
          return [
            failed(
              name,
              "its discovery names another issuer",
              "Set IDP_ISSUER to exactly the issuer that the provider publishes.",
            ),
          ];
        }
        const missing = ["authorization_endpoint", "token_endpoint", "jwks_uri"].filter(
          (key) => typeof body[key] !== "string",
        );
        if (missing.length > 0)
          return [
            failed(name, `its discovery lacks ${missing.join(", ")}`, "Ask whoever runs the provider."),
          ];
        const answers = ok(name, "its discovery answers, and names this issuer");
        // The header has whole seconds, cut off.
        return dateMs === undefined
          ? [answers]
          : [answers, clockFinding("clock of the identity provider", dateMs + 500 - systemClock.wallMs())];
      } catch (error) {
        return [unreachable(name, error, asker)];
      }
    },
  };
}

/** Any answer below 500 passes: without a token or a sign-in a refusal is correct. */
function reachCheck(name: string, url: string, asker: ProviderAsker): Check {
  return {
    name,
    async run(signal) {
      try {
        const answer = await asker.fetch(url, { signal, redirect: "manual" });
        await answer.body?.cancel();
        if (answer.status < 500) return [ok(name, "answers")];
        return [failed(name, `answers with status ${answer.status}`, TODO)];
      } catch (error) {
        return [unreachable(name, error, asker)];
      }
    },
  };
}

function unreachable(name: string, error: unknown, { nameAuthority }: ProviderAsker): Finding {
  return isUntrusted(error)
    ? failed(name, "its certificate is of an authority that is not known here", nameAuthority)
    : failed(name, `cannot be reached: ${errorText(error)}`, TODO);
}

/** Checks that an issuer publishes keys: without them no sign-in could be checked. */
export function providerKeysCheck(issuer: string, ask: Fetch): Check {
  const name = "identity provider";
  return {
    name,
    async run(signal) {
      const discovery = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
      const found = await getJson(discovery, signal, undefined, ask);
      const { keys } = (await getJson(String(found.body["jwks_uri"]), signal, undefined, ask)).body;
      if (Array.isArray(keys) && keys.length > 0) return [];
      return [failed(name, "publishes no keys", "Without them no sign-in could be checked.")];
    },
  };
}
