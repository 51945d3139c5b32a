// Tries certificates, tokens, sessions and passwords that must be refused, at every door that they could open
// (F20: C-07, C-09, spec 4.2, 5).
//
// Each is tried on real listeners with real TLS, beside a good one that must be accepted, since a server that
// refuses all callers would pass too. The refusal's reason is checked, so that an outage does not count as
// one. The sources are searched for comparisons of secrets that end at the first difference (C-12).
//
// It cannot see a flaw of the cryptography below Node, nor a door that is in no service description, and the
// source check knows secrets by their names.
import { startCluster } from "#metaserver/process/enrolment.fixture.ts";
import type { Rig } from "#prove/rig.ts";
import { lifetimeOf } from "#prove/rig-lifetime.ts";
import { CERTIFICATES, tryCertificates } from "./certificates.ts";
import { checkComparisons } from "./comparisons.ts";
import { ID_TOKENS, tryIdTokens } from "./id-tokens.ts";
import { JOIN_TOKENS, tryJoinTokens } from "./join-tokens.ts";
import { OPERATOR_TOKENS, tryOperatorTokens } from "./operators.ts";
import { SESSIONS_AND_PASSWORDS, trySessions } from "./sessions.ts";

const ALL = CERTIFICATES + JOIN_TOKENS + ID_TOKENS + SESSIONS_AND_PASSWORDS + OPERATOR_TOKENS;

/** All of them take seconds, so the short form is the whole. */
export const refusals: Rig = {
  name: "refusals",
  figure: "F20",
  unit: "credentials",
  proves: "no certificate, token, session or password that must be refused is accepted anywhere",
  goal: ALL,
  shortGoal: ALL,
  async run(campaign) {
    await checkComparisons(campaign);
    const cluster = await startCluster(lifetimeOf(campaign));
    await tryJoinTokens(campaign, cluster);
    await tryCertificates(campaign, cluster);
    await tryIdTokens(campaign);
    await trySessions(campaign);
    await tryOperatorTokens(campaign);
  },
};
