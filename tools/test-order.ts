// Starts the longest test files first, so that none runs alone at the end.

/** The slowest files on two cores, longest first. */
export const LONGEST: readonly string[] = [
  "tests/tuesday/tuesday.test.ts",
  "tests/e2e/pages-axe.test.ts",
  "tests/e2e/fencing.test.ts",
  "tests/e2e/shares.test.ts",
  "tests/e2e/restored-node.test.ts",
  "tests/e2e/pages-shows.test.ts",
  "tests/e2e/pages-crowd.test.ts",
  "tests/e2e/lost-root.test.ts",
  "tests/e2e/large-registration.test.ts",
  "tests/e2e/shared-store.test.ts",
  "tests/conformance/conformance.test.ts",
  "tests/e2e/up.test.ts",
  "tests/e2e/actions.test.ts",
  "tests/e2e/actions-output.test.ts",
  "tests/e2e/actions-restart.test.ts",
  "tests/e2e/rollouts.test.ts",
  "tests/install.test.ts",
];

/** The files in start order: those of the list, then the others by name. */
export function longestFirst(files: readonly string[]): string[] {
  const known = LONGEST.filter((path) => files.includes(path));
  return [...known, ...files.filter((path) => !known.includes(path)).toSorted()];
}
