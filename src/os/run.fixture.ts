// A process for the tests of exit-signals; its first argument chooses how it stops.
import { run } from "./exit-signals.ts";

const how = process.argv[2] ?? "stop";
const timer = setInterval(() => {}, 1_000);

await run(
  async () => {
    if (how === "bad start") {
      clearInterval(timer);
      throw new Error("cannot start");
    }
    process.stdout.write("started\n");
    const ended =
      how === "ends badly"
        ? Promise.reject(new Error("broke"))
        : how === "ends"
          ? Promise.resolve()
          : undefined;
    return {
      ...(ended === undefined ? {} : { ended }),
      async stop() {
        if (how === "hangs") await new Promise(() => {});
        if (how !== "leaks") clearInterval(timer);
        if (how === "bad stop") throw new Error("cannot stop");
      },
    };
  },
  {
    graceMs: how === "hangs" || how === "leaks" ? 300 : 10_000,
    onEvent: (event) => process.stdout.write(`${event}\n`),
  },
);
process.stdout.write("after\n");
