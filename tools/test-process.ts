// Loaded first into every process of a test file: ends it only when all results are written.
import { isMainThread } from "node:worker_threads";

// The test runner's forced exit drops what the pipe to a busy parent has not taken yet: the results at the end of a file would be lost.
if (isMainThread) {
  const exit = process.exit.bind(process);
  const exitWhenWritten = (code?: number | string | null): void => {
    if (process.stdout.writableLength === 0) exit(code);
    else process.stdout.write("", () => exit(code));
  };
  process.exit = exitWhenWritten as typeof process.exit;
}
