// Stops reading from a socket that an HTTP/2 session reads by itself: there is no other way to bound what it takes in at a time.
import type { Socket } from "node:net";

/** What Node reads a socket by. */
interface SocketHandle {
  readStart(): number;
  readStop(): number;
}

/**
 * As long as there is something to read, libuv reads a socket up to 32 times before it looks at any other, and nghttp2 unpacks what it is
 * given at once: two megabytes of small frames. Once paused, what the current reading has brought, 64 KiB at most, is the last of it.
 */
export interface SocketReading {
  pause(): void;
  resume(): void;
}

/** The reading of an accepted socket, with or without TLS on it. Does nothing once the socket is gone. */
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
