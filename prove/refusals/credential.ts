// Tries one credential at every door that it could open.

import type { Campaign } from "#prove/campaign.ts";
import { StatusError } from "#wire/framing/status.ts";
import { REASON_TRAILER } from "#wire/proto/status-table.ts";

/** Tries to get in; returns the code of the refusal, or undefined when it was accepted. */
export type Door = () => Promise<string | undefined>;

/** Returns the reason of a gRPC call's refusal, its status where it has none, undefined for OK. */
export async function outcomeOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return error.metadata.get(REASON_TRAILER) ?? `status ${error.code}: ${error.message}`;
  }
}

/**
 * Counts one credential that every door must refuse; `expected` are the refusals for this fault, so that
 * others show a fault of the rig.
 */
export async function mustBeRefused(
  campaign: Campaign,
  credential: string,
  doors: Readonly<Record<string, Door>>,
  expected: readonly string[],
): Promise<void> {
  for (const [door, knock] of Object.entries(doors)) {
    const outcome = await knock();
    campaign.count("calls refused");
    if (outcome === undefined) campaign.violation(`${credential}: accepted by ${door}`);
    else if (!expected.includes(outcome))
      campaign.violation(`${credential}: ${door} answered ${outcome} instead of ${expected.join(" or ")}`);
  }
  campaign.step();
}

/**
 * The other side: without it a server that refuses all callers would pass.
 * @throws Error when a good credential is refused
 */
export async function mustBeAccepted(
  campaign: Campaign,
  credential: string,
  doors: Readonly<Record<string, Door>>,
): Promise<void> {
  for (const [door, knock] of Object.entries(doors)) {
    const outcome = await knock();
    if (outcome !== undefined) throw new Error(`the good ${credential} was refused by ${door}: ${outcome}`);
    campaign.count("good ones accepted");
  }
}
