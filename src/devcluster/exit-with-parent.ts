// Preloaded into every process of the demonstration: ends it when `grove up` is gone for any reason.

/** Time after which a process that has not stopped is ended. */
const STOP_GRACE_MS = 5_000;

// Only the main thread of a process with a channel has one; it must not keep the process alive.
const { channel } = process;
if (channel !== undefined && channel !== null) {
  channel.unref();
  process.once("disconnect", () => {
    process.kill(process.pid, "SIGTERM");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), STOP_GRACE_MS).unref();
  });
}
