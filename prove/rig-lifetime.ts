// Lends the fixtures of src/, which end with a test, to a rig, where they end with its run.
import type { TestContext } from "node:test";
import type { Campaign } from "./campaign.ts";

/** Stands in for the TestContext of a fixture, which uses `after` alone. */
export function lifetimeOf(campaign: Campaign): TestContext {
  return { after: (end: () => unknown) => campaign.atEnd(end) } as unknown as TestContext;
}
