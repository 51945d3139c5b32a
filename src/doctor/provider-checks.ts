// Asks the identity provider for what sign-in needs of it: its discovery document, or its addresses.
import { errorText } from "#base/log.ts";
import { type Check, failed, ok } from "./finding.ts";
import { getJson } from "./server-probe.ts";

/** Where an identity provider is, as far as that is configured. */
export interface ProviderAddresses {
  readonly issuer?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly tokenUrl?: string | undefined;
  readonly tokeninfoUrl?: string | undefined;
}

const TODO =
  "Check the address and the network; a provider of your own authority needs that authority (-idp_ca, --ca).";

/** Checks whatever of a provider is configured: an issuer's discovery, and that the other addresses answer at all. */
export function providerChecks(addresses: ProviderAddresses): Check[] {
  const { issuer, authUrl, tokenUrl, tokeninfoUrl } = addresses;
  return [
    ...(issuer === undefined ? [] : [discoveryCheck(issuer)]),
    ...(
      [
        ["sign-in page", authUrl],
        ["token address", tokenUrl],
        ["tokeninfo address", tokeninfoUrl],
      ] as const
    ).flatMap(([what, url]) => (url === undefined ? [] : [reachCheck(`identity provider's ${what}`, url)])),
  ];
}

function discoveryCheck(issuer: string): Check {
  const name = "identity provider";
  return {
    name,
    async run(signal) {
      try {
        const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
        const { status, body } = await getJson(url, signal);
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
        return [ok(name, "its discovery answers, and names this issuer")];
      } catch (error) {
        return [failed(name, `cannot be reached: ${errorText(error)}`, TODO)];
      }
    },
  };
}

/** Any answer below 500 will do: without a token or a sign-in a refusal is the right one. */
function reachCheck(name: string, url: string): Check {
  return {
    name,
    async run(signal) {
      try {
        const answer = await fetch(url, { signal, redirect: "manual" });
        await answer.body?.cancel();
        if (answer.status < 500) return [ok(name, "answers")];
        return [failed(name, `answers with status ${answer.status}`, TODO)];
      } catch (error) {
        return [failed(name, `cannot be reached: ${errorText(error)}`, TODO)];
      }
    },
  };
}
