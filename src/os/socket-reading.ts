// Pauses reading from a socket that an HTTP server has taken over, the only way to bound its intake at a time.
import type { Socket } from "node:net";

/** Node's handle for reading a socket. */
interface SocketHandle {
  readStart(): number;
  readStop(): number;
}

/**
 * libuv reads a ready socket up to 32 times before any other, and the server unpacks the bytes at once: two
 * megabytes of small frames or requests. After a pause only the current reading arrives, 64 KiB at most.
 */
export interface SocketReading {
  pause(): void;
  resume(): void;
}

/** The reading of an accepted socket, with or without TLS. Does nothing once the socket is closed. */
export function readingOf(socket: Socket): SocketReading {
  return {
    pause: () => void handleOf(socket)?.readStop(),
    resume: () => void handleOf(socket)?.readStart(),
  };
}

function handleOf(socket: Socket): SocketHandle | undefined {
  const handle: unknown = socket.destroyed ? undefined : Reflect.get(socket, "_handle");
  return typeof handle === "object" && handle !== null && "readStop" in handle
    ? (handle as SocketHandle)
    : undefined;
}
