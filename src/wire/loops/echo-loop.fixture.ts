// The thread of a loop for tests: it forwards the unary method of the echo service.
import { parentPort, workerData } from "node:worker_threads";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { LoopGuest } from "./loop-guest.ts";
import type { ToLoop } from "./loop-messages.ts";
import type { LoopStart } from "./loop-server.ts";

const port = parentPort;
if (port === null) throw new Error("a loop runs in a thread of its own");
const guest = new LoopGuest({ port, start: workerData as LoopStart, onSet: () => undefined });
guest.forward(EchoService, {}, {});
port.on("message", (batch: readonly ToLoop[]) => guest.take(batch));
