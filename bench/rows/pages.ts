// The console's pages in a browser under a large cluster: no long task, and no leak after an hour of updates.
import { setTimeout as wait } from "node:timers/promises";
import type { Program } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import type { Group, Row } from "#bench/row.ts";
import { startConsole } from "./console-cluster.ts";

const NODES = 1_000;
const USERS = 10_000;
/** The pages that show the content of an update. */
const PATHS = ["/", "/nodes/{id}", "/users", "/performance", "/alerts"];
/** Five snapshots. */
const WATCHED_SECONDS = 26;
/** Until every node was polled twice, so that there are rates. */
const WARM_MS = 15_000;
/** Updates of a minute on one page, of ten minutes, of an hour. */
const STAY = 12;
const EARLY = 120;
const HOUR = 720;
const FROM_SECONDS = 1_790_000_000;

export const pages: Group = {
  name: "pages",
  rows: () => [
    {
      name: "1,000 nodes and 10,000 users: the pages' longest task on an update, processor time",
      unit: "ms",
      below: 50,
      async measure(lab) {
        const found = await watchPages(lab);
        const worst = Math.max(...found.map(({ processorMs }) => processorMs));
        const each = found.map(
          ({ path, processorMs, wallMs }) => `${path} ${processorMs.toFixed(0)} (${wallMs.toFixed(0)})`,
        );
        return { value: worst, detail: `by page, in brackets by the wall clock: ${each.join(", ")}` };
      },
    },
    hourRow("on the overview", () => "/"),
    hourRow("from page to page", (update) => PATHS[Math.floor(update / STAY) % PATHS.length] ?? "/"),
  ],
};

interface Watched {
  readonly path: string;
  readonly processorMs: number;
  readonly wallMs: number;
}

/** Visits every page of a running `grove admin`. */
async function watchPages(lab: Lab): Promise<readonly Watched[]> {
  const { port, service } = await startConsole(lab, { nodes: NODES, users: USERS / NODES });
  await wait(WARM_MS);
  const url = `http://127.0.0.1:${port}`;
  const reader = lab.program("page-reader");
  await reader.run("signIn", { url, password: "admin" });
  const found: Watched[] = [];
  for (const path of PATHS) {
    const seen = await reader.run("watch", {
      url: url + path.replace("{id}", "node-5"),
      seconds: WATCHED_SECONDS,
    });
    const { processorMs, wallMs } = seen as { processorMs: number; wallMs: number };
    found.push({ path, processorMs, wallMs });
  }
  await reader.close();
  await service.close();
  return found;
}

/** An hour of a reader who visits these pages in turn; the overview at the tenth minute and at the end. */
function hourRow(where: string, pathAt: (update: number) => string): Row {
  return {
    name: `an hour of updates ${where} (720 snapshots, simulated clock): growth of the page's heap from the tenth minute on`,
    unit: "MB",
    below: 2,
    async measure(lab) {
      const { console, port } = await lab.once("console of an hour", async () => {
        const program = lab.program("hour-console");
        const input = { nodes: NODES, users: USERS, fromSeconds: FROM_SECONDS };
        return { console: program, port: numberOf(await program.run("serve", input)) };
      });
      const reader = lab.program("page-reader");
      await reader.run("open", { url: `http://127.0.0.1:${port}/` });
      let early: Held | undefined;
      for (let update = 1; update <= HOUR; update++) {
        await reader.run("go", pathAt(update).replace("{id}", "n5"));
        await console.run("step");
        await reader.run("pass");
        if (update === EARLY) early = await held(reader);
      }
      const late = await held(reader);
      await reader.close();
      if (early === undefined) throw new Error("the tenth minute did not come");
      const grown = (late.heapBytes - early.heapBytes) / 1e6;
      const detail = [
        `${(early.heapBytes / 1e6).toFixed(2)} to ${(late.heapBytes / 1e6).toFixed(2)} MB`,
        `${early.elements} to ${late.elements} nodes of the document`,
        `${early.listeners} to ${late.listeners} listeners`,
      ];
      return { value: Math.max(0, grown), detail: detail.join(", ") };
    },
  };
}

interface Held {
  readonly heapBytes: number;
  readonly elements: number;
  readonly listeners: number;
}

async function held(reader: Program): Promise<Held> {
  return (await reader.run("held")) as unknown as Held;
}
