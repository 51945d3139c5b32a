// Product files that use the machine's clock, timers or randomness directly, with reasons.

/** The four things that ports stand for. */
export type ClockUse = "chance" | "steady" | "timer" | "wall";

/** The ports. */
export const CLOCK_PORTS: readonly string[] = ["src/base/clock.ts", "src/base/random.ts"];

/** A file's permitted uses, with the reason. */
export interface ClockException {
  readonly uses: readonly ClockUse[];
  readonly why: string;
}

const SLICES =
  "It measures how long it has kept the event loop; a clock that stands still would never let go.";
const DURATION =
  "It measures real waiting for disks and sockets, which goes on while a test's clock stands still.";
const ALIVE = "A timer of the clock keeps no process alive, and this process has nothing else yet.";
const FILE_TIMES =
  "It compares with, or sets, times of local files, which the operating system's clock writes.";
const CHILDREN = "It bounds how long real processes take to start and stop.";
const SOCKETS =
  "It bounds what a foreign server over a real socket takes, and keeps the process alive meanwhile.";

const LIBRARY = "The library reads the machine's clock itself, and is told how far ours is from it.";
const FOR_TESTS = "Only tests start it.";

/** By path. An exception that is no longer needed fails the test. */
export const CLOCK_EXCEPTIONS: Readonly<Record<string, ClockException>> = {
  "src/base/call-waits.ts": { uses: ["steady"], why: DURATION },
  "src/client/administration/administration.ts": { uses: ["timer"], why: SOCKETS },
  "src/client/connection/cluster.ts": { uses: ["timer"], why: ALIVE },
  "src/client/import/webdav-source.ts": { uses: ["timer"], why: ALIVE },
  "src/client/signin/code-exchange.ts": { uses: ["timer"], why: SOCKETS },
  "src/client/transfer/local-file.ts": { uses: ["wall"], why: FILE_TIMES },
  "src/client/transfer/local-source.ts": { uses: ["timer", "wall"], why: FILE_TIMES },
  "src/client/transfer/local-tree.ts": { uses: ["steady"], why: SLICES },
  "src/client/transfer/part-owner.ts": { uses: ["wall"], why: FILE_TIMES },
  "src/client/transfer/old-files.ts": { uses: ["wall"], why: FILE_TIMES },
  "src/client/signin/process-lock.ts": { uses: ["timer", "wall"], why: FILE_TIMES },
  "src/client/terminal/progress.ts": {
    uses: ["timer"],
    why: "It draws for people while a transfer runs, and what it draws is tested without it.",
  },
  "src/client/signin/sign-in.ts": {
    uses: ["timer"],
    why: "It bounds how long a person may take in the browser.",
  },
  "src/client/transfer/upload.ts": { uses: ["wall"], why: FILE_TIMES },
  "src/console/live/hub.ts": {
    uses: ["steady", "timer"],
    why: "Real sockets close at its end, and its slices of the event loop are real: a clock that stands still would let neither end.",
  },
  "src/console/operators/sign-in-routes.ts": {
    uses: ["timer"],
    why: "A wrong password is answered late in real time, whatever the clock says.",
  },
  "src/console/cluster/time-slices.ts": { uses: ["steady"], why: SLICES },
  "src/devcluster/exit-with-parent.ts": { uses: ["timer"], why: CHILDREN },
  "src/devcluster/last-run.ts": { uses: ["steady", "timer"], why: CHILDREN },
  "src/devcluster/probe.ts": { uses: ["timer"], why: SOCKETS },
  "src/devcluster/supervised-process.ts": { uses: ["steady", "timer"], why: CHILDREN },
  "src/metaserver/directory/postgres-connections.ts": { uses: ["steady", "timer"], why: SOCKETS },
  "src/metaserver/directory/postgres-store.ts": { uses: ["steady", "timer"], why: SOCKETS },
  "src/doctor/finding.ts": { uses: ["timer"], why: SOCKETS },
  "src/wire/grpc/client.ts": { uses: ["timer"], why: ALIVE },
  "src/wire/grpc/echo-service.ts": { uses: ["timer"], why: FOR_TESTS },
  "src/wire/grpc/hostile-lab.ts": { uses: ["timer"], why: FOR_TESTS },
  "src/security/identity/code-flow.ts": { uses: ["wall"], why: LIBRARY },
  "src/security/identity/issuer-keys.ts": { uses: ["wall"], why: LIBRARY },
  "src/console/orchestration/node-source.ts": { uses: ["timer"], why: SOCKETS },
  "src/os/exit-signals.ts": {
    uses: ["timer"],
    why: "It ends a process that does not end by itself, whatever became of its clock.",
  },
  "src/os/logger.ts": {
    uses: ["wall"],
    why: "A line of the log has the machine's time, also where a test drives the clock.",
  },
  "src/os/file-lock.ts": { uses: ["timer"], why: ALIVE },
  "src/os/listen-retry.ts": { uses: ["timer"], why: ALIVE },
  "src/storage/local/garbage-collector.ts": {
    uses: ["timer"],
    why: "It looks again for a lease that another process holds in a file, and ends.",
  },
  "src/storage/scrub/pass-thread.ts": {
    uses: ["steady", "timer"],
    why: "It paces a thread of its own by real time, and no clock can be handed to a thread.",
  },
  "src/storage/writer/write-queue.ts": { uses: ["steady"], why: DURATION },
  "src/storage/writer/write-worker.ts": {
    uses: ["timer"],
    why: "It runs in a thread of its own, and no clock can be handed to a thread.",
  },
};
