// Opens the console's pages in Chromium during snapshots: lengths of tasks, and memory after an hour.
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import type { Json } from "#bench/child.ts";
import { serveTasks } from "#bench/tasks.ts";
import { CHROMIUM, CHROMIUM_FLAGS } from "#testing/chromium.ts";

const SIZE = { width: 1_440, height: 900 };
const WAIT_MS = 60_000;
/** Time for the first drawing of a page and the snapshots during it. */
const FIRST_MS = 8_000;
const TRACED = ["__metadata", "disabled-by-default-devtools.timeline"];
const STEP_MS = 5_000;
/** Turns of the page's clock in which a snapshot is taken: timers of a few milliseconds fire in them. */
const TURN_MS = 10;

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds, and those of the thread's own time. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

let browser: Browser | undefined;
let opened: { readonly page: Page; readonly tools: CDPSession } | undefined;

async function openPage(): Promise<Page> {
  if (CHROMIUM === undefined) throw new Error("Chromium is not installed");
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  await opened?.page.close();
  const page = await browser.newPage({ viewport: SIZE });
  page.setDefaultTimeout(WAIT_MS);
  opened = { page, tools: await page.context().newCDPSession(page) };
  return page;
}

function here(): { readonly browser: Browser; readonly page: Page; readonly tools: CDPSession } {
  if (browser === undefined || opened === undefined) throw new Error("no page is open");
  return { browser, ...opened };
}

async function isDrawn(page: Page): Promise<void> {
  await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
  for (const reading of await page.getByText(/^Reading /).all()) await reading.waitFor({ state: "detached" });
  await page.getByText(/live \d+ s ago/).waitFor();
}

async function signIn(input: Json): Promise<null> {
  const { url, password } = input as { url: string; password: string };
  const page = await openPage();
  await page.goto(`${url}/sign-in`);
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Nodes" }).waitFor();
  return null;
}

/** The longest task of the page's thread during snapshots: in wall milliseconds, and in the thread's own. */
async function watch(input: Json): Promise<Json> {
  const { url, seconds } = input as { url: string; seconds: number };
  const at = here();
  await at.page.goto(url);
  await isDrawn(at.page);
  await at.page.waitForTimeout(FIRST_MS);
  await at.browser.startTracing(at.page, { categories: TRACED });
  await at.page.waitForTimeout(seconds * 1_000);
  const trace = JSON.parse((await at.browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const threads = new Set(
    trace.traceEvents.flatMap(({ name, args, pid, tid }) =>
      name === "thread_name" && args?.name === "CrRendererMain" ? [`${pid} ${tid}`] : [],
    ),
  );
  const tasks = trace.traceEvents.filter(
    ({ name, pid, tid }) => name === "RunTask" && threads.has(`${pid} ${tid}`),
  );
  if (tasks.length === 0) throw new Error("the browser told of no task");
  const longest = (field: "dur" | "tdur"): number =>
    Math.max(...tasks.map((task) => task[field] ?? 0)) / 1_000;
  return { wallMs: longest("dur"), processorMs: longest("tdur"), tasks: tasks.length };
}

/** Opens a page whose clock stands still until `pass` moves it. */
async function open(input: Json): Promise<null> {
  const { url } = input as { url: string };
  const page = await openPage();
  await page.clock.install();
  await page.goto(url);
  await took(page);
  await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
  return null;
}

/** Goes to another page as a link does, without a reload. */
async function go(path: Json): Promise<null> {
  const to = JSON.stringify(path);
  await here().page.evaluate(`if (location.pathname !== ${to}) history.pushState(null, "", ${to})`);
  return null;
}

/** Lets the page's clock go on until a snapshot has been taken: then its header says "live 0 s ago". */
async function took(page: Page): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    await page.clock.runFor(TURN_MS);
    const mark = await page.locator(".frame-header .state").textContent();
    if (/live 0 s ago/.test(mark ?? "")) return;
    if (performance.now() > deadline) throw new Error(`no snapshot was taken: ${mark}`);
  }
}

/** Five seconds of the page's clock; earlier messages of the socket are taken first. */
async function pass(): Promise<null> {
  const { page } = here();
  await took(page);
  await page.clock.runFor(STEP_MS);
  return null;
}

/** Memory after a full collection: bytes of JavaScript, nodes of the document and listeners. */
async function held(): Promise<Json> {
  const { tools } = here();
  for (let time = 0; time < 3; time++) await tools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await tools.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await tools.send("Memory.getDOMCounters");
  return { heapBytes: usedSize, elements: nodes, listeners: jsEventListeners };
}

serveTasks({ signIn, watch, open, go, pass, held }, async () => {
  await browser?.close();
});
