// Loaded first into every process of a test file: resolves imports of sources, delays the exit until all
// results are written, and lets its threads run the bundle, if the run has one. Into the file that the query
// `cost` names it writes at the end the processor time of the process and all its children.
import { writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { resolveSourcesOf } from "./test-imports.ts";

resolveSourcesOf(new URL("..", import.meta.url));

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
