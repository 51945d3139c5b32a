// TLS handshakes that stop after their first bytes, at any server of the rigs.
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { AttackPlace } from "./flood.ts";
import type { Struck } from "./orders.ts";

/** Sends the beginning of a ClientHello, and then nothing. */
export async function stallHandshakes(
  place: Pick<AttackPlace, "from" | "isOver" | "tlsPort">,
): Promise<Struck> {
  const sockets: Socket[] = [];
  while (!place.isOver()) {
    for (let count = 0; count < 20; count++) {
      const socket = connect({ port: place.tlsPort, host: "127.0.0.1", localAddress: place.from });
      socket.on("error", () => undefined);
      socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00]));
      sockets.push(socket);
    }
    await sleep(20);
  }
  for (const socket of sockets) socket.destroy();
  return { strokes: sockets.length };
}
