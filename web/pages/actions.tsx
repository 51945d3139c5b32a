// Actions and rollouts: composers and histories.
import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";
import { useAddressSearch } from "../live/address-search.ts";
import { ActionComposer } from "../parts/action-composer.tsx";
import { ActionRecords } from "../parts/action-records.tsx";
import { HowToEnrol } from "../parts/enrolment.tsx";
import { RolloutComposer } from "../parts/rollout-composer.tsx";
import { RolloutRecords } from "../parts/rollout-records.tsx";

/** The page at "/actions"; "?do=restart&node=n1" fills the composer, "?tab=rollouts" opens rollouts. */
export function Page(): ReactNode {
  const { search, set } = useAddressSearch();
  const tab = search.get("tab") === "rollouts" ? "rollouts" : "actions";
  return (
    <>
      <h1>Actions</h1>
      <Tabs value={tab} onChange={(value) => set("tab", value)} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="actions">One action</Tabs.Tab>
          <Tabs.Tab value="rollouts">Rollouts</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="actions" pt="sm">
          <HowToEnrol />
          <ActionComposer />
          <h2>What was run</h2>
          <ActionRecords />
        </Tabs.Panel>
        <Tabs.Panel value="rollouts" pt="sm">
          <HowToEnrol />
          <RolloutComposer />
          <h2>What was rolled out</h2>
          <RolloutRecords />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
