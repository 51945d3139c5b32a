// In which order the files of tests start: the longest first, so that none of them is alone at the end.

/** Files that take longest on two cores, the longest first. What is not here takes less. */
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

/** The files in the order in which they start: those of the list, then the others by name. */
export function longestFirst(files: readonly string[]): string[] {
  const known = LONGEST.filter((path) => files.includes(path));
  return [...known, ...files.filter((path) => !known.includes(path)).toSorted()];
}
