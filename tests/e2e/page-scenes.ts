// Every page of the console in every relevant state, for axe, narrow screens and visual review.
import type { Page } from "playwright-core";
import type { FakeConsole } from "./fake-console.ts";
import { BOB, LOCKED } from "./full-cluster.ts";

/** One state of one page. */
export interface Scene {
  readonly name: string;
  readonly path: string;
  /** The text that must be visible, beside the title, before the scene counts as shown. */
  readonly shows: RegExp;
  /** The actions once the page is there. */
  readonly act?: (page: Page, fake: FakeConsole) => Promise<void>;
  /** The undo before the next scene. */
  readonly end?: (page: Page, fake: FakeConsole) => Promise<void>;
}

const PUBLIC_SCENES: readonly Scene[] = [
  { name: "overview", path: "/", shows: /fs-pi4/ },
  { name: "nodes", path: "/nodes", shows: /5 nodes/ },
  { name: "nodes-none-fits", path: "/nodes?q=zzz", shows: /No node has this name/ },
  { name: "node", path: "/nodes/n1", shows: /p95 write/ },
  { name: "node-details", path: "/nodes/n2?tab=details", shows: /Chunk files/ },
  { name: "node-offline", path: "/nodes/n3", shows: /last answered/i },
  { name: "node-unknown", path: "/nodes/n5", shows: /has not answered this console yet/i },
  { name: "node-reserve", path: "/nodes/n1", shows: /keeps free 1 GiB, not the usual 20 GiB/ },
  { name: "nodes-unknown", path: "/nodes?state=unknown", shows: /fs-new/ },
  { name: "node-missing", path: "/nodes/gone", shows: /There is no such node/ },
  { name: "alerts", path: "/alerts", shows: /What has been/ },
  { name: "alerts-none-fits", path: "/alerts?type=corruption", shows: /Clear it to see all/ },
  { name: "performance", path: "/performance", shows: /Throughput of all nodes/ },
  { name: "performance-week", path: "/performance?span=week", shows: /One point is/ },
  { name: "node-around-a-moment", path: "/nodes/n1?span=around", shows: /One point is/ },
  { name: "sign-in", path: "/sign-in", shows: /Password/ },
  { name: "nowhere", path: "/nowhere", shows: /./ },
];

/** The scenes of a visitor. */
export const VISITOR_SCENES: readonly Scene[] = [
  ...PUBLIC_SCENES,
  { name: "refused", path: "/users", shows: /This page is for operators/ },
  { name: "overview-counted", path: "/", shows: /2 further alerts are for operators/ },
  { name: "alerts-counted", path: "/alerts", shows: /2 further alerts are for operators/ },
  {
    name: "overview-calm",
    path: "/nowhere",
    shows: /./,
    act: async (page, fake) => {
      const { alerts } = fake.cluster;
      fake.cluster.alerts = [];
      fake.say("alert.resolved", alerts[0]);
      await page.getByRole("link", { name: "Overview" }).first().click();
      await page.getByText(/no alert about machines or the service is open; 2 further alerts/).waitFor();
      fake.cluster.alerts = alerts;
    },
    end: async (_page, fake) => fake.say("alert.raised", fake.cluster.alerts[0]),
  },
];

const closeByKey = (page: Page): Promise<void> => page.keyboard.press("Escape");

/** The scenes of an operator. */
export const OPERATOR_SCENES: readonly Scene[] = [
  ...PUBLIC_SCENES,
  { name: "node-users", path: "/nodes/n2?tab=users", shows: /bob@people\.example/ },
  { name: "node-alerts", path: "/nodes/n2?tab=alerts", shows: /83 % full/ },
  { name: "node-actions", path: "/nodes/n2?tab=actions", shows: /5f3c9a10/ },
  { name: "node-log", path: "/nodes/n1?tab=log", shows: /upload failed/ },
  { name: "node-held", path: "/nodes/n4", shows: /In maintenance until/ },
  { name: "node-out-of-service", path: "/nodes/n2", shows: /It is taken out of service/ },
  { name: "moves", path: "/moves", shows: /5 moves/ },
  {
    name: "rebalance-plan",
    path: "/moves",
    shows: /5 moves/,
    act: async (page) => {
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByLabel("Type “rebalance” to move them").fill("rebalance");
    },
  },
  {
    name: "drain-plan",
    path: "/nodes/n1/service",
    shows: /Nothing is deleted before/,
    act: async (page) => {
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByLabel("Type “fs-x86-1” to go on").fill("fs-x86-1");
    },
  },
  {
    name: "drain-to-engine",
    path: "/nodes/n1/service",
    shows: /Nothing is deleted before/,
    act: async (page) => {
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByRole("button", { name: "Plan for the shared engine instead" }).click();
      await page.getByText("They go to the shared engine").waitFor();
      await page.getByLabel("Type “fs-x86-1” to go on").fill("fs-x86-1");
    },
  },
  {
    name: "drain-blocked",
    path: "/nodes/n4/service",
    shows: /Nothing is deleted before/,
    act: async (page) => {
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByText("What is in the way").waitFor();
    },
  },
  { name: "drain-under-way", path: "/nodes/n2/service", shows: /1,201 roots left/ },
  { name: "drain-empty", path: "/nodes/n3/service", shows: /grove node remove n3/ },
  { name: "users", path: "/users", shows: /23 users/ },
  { name: "users-of-a-node", path: "/users?node=n2", shows: /2 users/ },
  { name: "users-locked", path: "/users?locked=true", shows: /2 users/ },
  {
    name: "users-new-address",
    path: "/users",
    shows: /2 people wait with a new address/,
    act: async (page) => {
      await page.getByRole("button", { name: /^Confirm alice\.married-name/ }).click();
      await page.getByText("There is no way back").waitFor();
    },
  },
  { name: "users-none-fits", path: "/users?q=zzz", shows: /No user has/ },
  { name: "user", path: `/users?user=${encodeURIComponent(BOB)}`, shows: /New quota/ },
  {
    name: "user-new-quota",
    path: `/users?user=${encodeURIComponent(BOB)}`,
    shows: /New quota/,
    act: async (page) => page.getByRole("textbox", { name: "New quota" }).fill("10 GiB"),
  },
  {
    name: "user-trash",
    path: `/users?user=${encodeURIComponent(BOB)}`,
    shows: /New quota/,
    act: async (page) => {
      await page.getByLabel("Reason to see the names").fill("ticket 4711");
      await page.getByRole("button", { name: "Show what is in the trash" }).click();
      await page.getByRole("button", { name: "Restore /drafts/" }).click();
      await page.getByText(/^Back at \/drafts \(2\)/).waitFor();
    },
  },
  {
    name: "user-lock",
    path: `/users?user=${encodeURIComponent(BOB)}`,
    shows: /New quota/,
    act: async (page) => {
      await page.getByLabel("Reason", { exact: true }).fill("has left");
      await page.getByRole("button", { name: "Lock out" }).click();
      await page.getByText(/It does not hold everywhere yet/).waitFor();
    },
  },
  { name: "user-locked", path: `/users?user=${encodeURIComponent(LOCKED)}`, shows: /Let in again/ },
  { name: "alert-lost-root", path: "/alerts", shows: /grove node lost-root dave@/ },
  { name: "actions", path: "/actions", shows: /What will run/ },
  { name: "actions-not-enrolled", path: "/actions", shows: /grove node add n5 USER@/ },
  { name: "node-not-enrolled", path: "/nodes/n5", shows: /grove node add n5 USER@/ },
  { name: "node-not-allowed", path: "/nodes/n5", shows: /-allow_nodes names; naming 10\.9\.8\.7/ },
  { name: "settings-reserve", path: "/settings", shows: /fs-x86-1 keeps free 1 GiB, not the usual 20 GiB/ },
  {
    name: "actions-danger",
    path: "/actions?do=reboot&node=n1",
    shows: /Type “fs-x86-1”/,
  },
  {
    name: "actions-dry-run",
    path: "/actions?do=restart&node=n1",
    shows: /What will run/,
    act: async (page) => {
      await page.getByRole("button", { name: "Show what will run" }).click();
      await page.getByText("The same on all 3 nodes").waitFor();
    },
  },
  { name: "action", path: "/actions/x1", shows: /package-\d/ },
  { name: "rollouts", path: "/actions?tab=rollouts", shows: /Show the plan/ },
  {
    name: "rollout-plan",
    path: "/actions?tab=rollouts",
    shows: /Show the plan/,
    act: async (page) => {
      await page.getByText("What must hold before the next goes").click();
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByText("make -C /opt/grove build").first().waitFor();
    },
  },
  { name: "rollout-running", path: "/actions/rollouts/r1", shows: /waits at its gate/ },
  { name: "rollout-stopped", path: "/actions/rollouts/r2", shows: /It stopped/ },
  {
    name: "rollout-back",
    path: "/actions/rollouts/r2",
    shows: /It stopped/,
    act: async (page) => {
      await page.getByRole("button", { name: "Go back …" }).click();
      await page.getByRole("button", { name: /^Go back on/ }).waitFor();
    },
    end: closeByKey,
  },
  { name: "logs", path: "/logs?node=n1", shows: /upload failed/ },
  { name: "audit", path: "/audit", shows: /quota\.set/ },
  { name: "settings", path: "/settings", shows: /Sessions/ },
  {
    name: "palette",
    path: "/",
    shows: /fs-pi4/,
    act: async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Page or node" }).fill("fs");
    },
    end: closeByKey,
  },
  {
    name: "keys",
    path: "/",
    shows: /fs-pi4/,
    act: async (page) => {
      await page.getByRole("heading", { level: 1 }).click();
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
    },
    end: closeByKey,
  },
  {
    name: "menu-of-silences",
    path: "/alerts",
    shows: /What has been/,
    act: async (page) => {
      await page
        .getByRole("button", { name: /^Silence / })
        .first()
        .click();
      await page.getByRole("menuitem", { name: /Until tomorrow/ }).waitFor();
    },
    end: closeByKey,
  },
  {
    name: "silence-until",
    path: "/nodes/n1",
    shows: /p95 write/,
    act: async (page) => {
      await page.getByRole("button", { name: "Silence fs-x86-1" }).click();
      await page.getByRole("menuitem", { name: /For, or until/ }).click();
      await page.getByLabel("For how long, or until when").fill("2h");
    },
    end: closeByKey,
  },
  {
    name: "maintenance",
    path: "/nodes/n1",
    shows: /p95 write/,
    act: async (page) => {
      await page.getByRole("button", { name: "Maintenance …" }).click();
      await page.getByLabel("For how long, or until when").fill("until tomorrow 08:00");
    },
    end: closeByKey,
  },
  {
    name: "session-ends",
    path: "/settings",
    shows: /Sessions/,
    act: async (page, fake) => {
      fake.say("session.expiring", { expires_at: Math.floor(Date.now() / 1_000) + 300 });
      await page.getByText("Your session ends soon").waitFor();
    },
  },
];

/** Goes to a scene without reloading, and waits until it is there. */
export async function showScene(page: Page, fake: FakeConsole, scene: Scene): Promise<void> {
  // Another page first, so that nothing of the scene before stays.
  await page.evaluate('history.pushState(null, "", "/sign-in?back=/nowhere")');
  await page.getByRole("textbox", { name: "Password" }).waitFor();
  await page.evaluate(`history.pushState(null, "", ${JSON.stringify(scene.path)})`);
  const main = page.getByRole("main");
  await main.getByRole("heading", { level: 1 }).waitFor();
  await page.locator("main, aside").getByText(scene.shows).first().waitFor();
  for (const reading of await page.getByText(/^Reading /).all()) await reading.waitFor({ state: "detached" });
  await scene.act?.(page, fake);
}
