// The console under load: pages, browsers and many sockets.
import type { Group } from "#bench/row.ts";
import { consoleClusterRows } from "./console-cluster.ts";
import { consoleLiveRows } from "./console-live.ts";

/** Each part's rows are in a file of their own. */
export const console: Group = {
  name: "console",
  rows: () => [...consoleClusterRows(), ...consoleLiveRows()],
};
