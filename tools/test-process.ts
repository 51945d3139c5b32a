// Loaded first into every process of a test file: delays its exit until all results are written, and lets its
// threads run the bundle, if the run has one. Into the file that the query `cost` names it writes at the end the
// processor time of the process and all its children.
import { writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

// The test runner's forced exit drops unread data of the pipe: the last results of a file would be lost.
if (isMainThread) {
  const exit = process.exit.bind(process);
  // Without an argument the code stands that failures after the tests have set.
  const exitWhenWritten = (...code: [(number | string | null)?]): void => {
    if (process.stdout.writableLength === 0) exit(...code);
    else process.stdout.write("", () => exit(...code));
  };
  process.exit = exitWhenWritten as typeof process.exit;
  const costFile = new URL(import.meta.url).searchParams.get("cost");
  if (costFile !== null) {
    const { processorMsOfTree } = await import("#bench/processor-time.ts");
    process.on("exit", () => writeFileSync(costFile, `${processorMsOfTree(process.pid)}`));
  }
  const program = process.env["GROVE_TEST_PROGRAM"];
  if (program !== undefined) (await import("./test-threads.ts")).startThreadsFrom(program);
}
