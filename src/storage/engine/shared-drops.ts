// Drops of staged rows, of uploads and copies, that end with the hold of their root.
import { isGroveError } from "#base/errors.ts";
import { DropRetries } from "#storage/local/drop-retries.ts";

/** Whoever takes a root over purges what was staged there, so that nothing is left to drop here. */
export class SharedDrops extends DropRetries {
  override run(drop: () => Promise<unknown>): Promise<void> {
    return super.run(async () => {
      await drop().catch((error: unknown) => {
        if (!isGroveError(error, "NO_SUCH_PATH", "WRONG_NODE")) throw error;
      });
    });
  }
}
