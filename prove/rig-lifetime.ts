// The fixtures of src/ end with a test; in a rig they end with its run.
import type { TestContext } from "node:test";
import type { Campaign } from "./campaign.ts";

/** What a fixture takes for a test: of it, it uses `after` alone. */
export function lifetimeOf(campaign: Campaign): TestContext {
  return { after: (end: () => unknown) => campaign.atEnd(end) } as unknown as TestContext;
}
