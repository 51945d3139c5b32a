// Ends what was begun, in the opposite order.

/** Something that ends. */
export type End = () => Promise<void> | void;

/** Ends everything, the last first, and the rest also when one of them fails; then the first failure is thrown. The list is empty afterwards. */
export async function endAll(ends: End[]): Promise<void> {
  const failures: unknown[] = [];
  for (const end of ends.splice(0).toReversed()) {
    try {
      await end();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
