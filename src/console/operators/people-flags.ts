// Flags of `grove admin` for signing in by name at the identity provider.
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { systemRandom } from "#base/random.ts";
import { readPem } from "#security/authority/tls-material.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { type OperatorPeople, openOperatorPeople } from "./operator-people.ts";

/** Values of the flags. */
export interface PeopleFlags {
  readonly operators?: string;
  readonly operatorClaim?: { readonly claim: string; readonly value: string };
  readonly idpCa?: string;
}

/** Adds the flags. */
export function withPeopleFlags(server: Command): Command {
  return server
    .option(
      "--operators <file>",
      "operators who may sign in at the identity provider too: a subject in each line (default: nobody)",
    )
    .option(
      "--operator-claim <name=value>",
      "instead of a list: a claim that operators' ID tokens have, such as groups=grove-admins",
      parseClaim,
    )
    .option(
      "--idp-ca <file>",
      "authority of the identity provider's certificate, PEM (default: the public ones)",
    );
}

/** Opens signing in by name; undefined unless a flag names the operators. */
export async function operatorPeople(
  { operators, operatorClaim, idpCa }: PeopleFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly people?: OperatorPeople }> {
  if (operators !== undefined && operatorClaim !== undefined)
    throw new GroveError("BAD_ARGUMENT", "give -operators or -operator_claim, not both");
  const rule = operators === undefined ? operatorClaim : { file: resolve(operators) };
  if (rule === undefined) return {};
  const people = await openOperatorPeople({
    settings: readIdentitySettings(env),
    idpCa: idpCa === undefined ? undefined : await readPem(idpCa),
    rule,
    clock: systemClock,
    random: systemRandom,
  });
  return { people };
}

function parseClaim(text: string): { readonly claim: string; readonly value: string } {
  const [, claim, value] = /^([\w.:/-]{1,128})=([^\s=].{0,254})$/u.exec(text) ?? [];
  if (claim === undefined || value === undefined) throw new InvalidArgumentError("write name=value.");
  return { claim, value };
}
