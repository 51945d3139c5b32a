// The pages of the side bar, in order.

/** One entry of the side bar and of the command palette. */
export interface Place {
  readonly path: string;
  readonly label: string;
  /** The key after "g" for this page. */
  readonly letter: string;
  /** True for pages that visitors do not see. */
  readonly operator?: true;
  /** Synonyms for the search. */
  readonly words: string;
}

/** Every page of the side bar. */
export const PLACES: readonly Place[] = [
  { path: "/", letter: "o", label: "Overview", words: "home start cluster status" },
  { path: "/nodes", letter: "n", label: "Nodes", words: "machines fileservers disks temperature" },
  { path: "/users", letter: "u", label: "Users", operator: true, words: "quota people storage" },
  { path: "/alerts", letter: "a", label: "Alerts", words: "problems warnings silences" },
  {
    path: "/actions",
    letter: "x",
    label: "Actions",
    operator: true,
    words: "run restart update reboot deploy rollout ssh",
  },
  {
    path: "/moves",
    letter: "m",
    label: "Moves",
    operator: true,
    words: "drain rebalance take out of service roots",
  },
  { path: "/logs", letter: "l", label: "Logs", operator: true, words: "journal tail follow" },
  { path: "/performance", letter: "p", label: "Performance", words: "throughput latency iops csv export" },
  { path: "/audit", letter: "t", label: "Audit", operator: true, words: "who did what history" },
  {
    path: "/settings",
    letter: "s",
    label: "Settings",
    operator: true,
    words: "version sessions password store",
  },
];
