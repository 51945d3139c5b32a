// Sees whether the peer of a socket takes bytes, where HTTP/2 has taken the socket over.
import type { Socket } from "node:net";

/** Node's handle for writing to a TCP socket. */
interface WritingHandle {
  /** Bytes given to libuv so far. */
  readonly bytesWritten: number;
  /** Those of them that the kernel has not taken. */
  readonly writeQueueSize: number;
}

/**
 * The progress of a socket's writing, from look to look. Bytes that the kernel takes at once say nothing about the
 * peer. Once it takes no more, the peer must acknowledge some before it takes others.
 */
export class WriteProgress {
  #waitingBytes = 0;
  #takenBytes = 0;

  /** Bytes that the kernel had taken at the last look; 0 once the socket has ended. */
  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Whether bytes waited for the peer at the last look and some of them have left since. */
  look(socket: Socket | undefined): boolean {
    const { bytesWritten, writeQueueSize } = handleOf(socket) ?? { bytesWritten: 0, writeQueueSize: 0 };
    const takenBytes = bytesWritten - writeQueueSize;
    const hasMoved = this.#waitingBytes > 0 && takenBytes > this.#takenBytes;
    this.#waitingBytes = writeQueueSize;
    this.#takenBytes = takenBytes;
    return hasMoved;
  }
}

function handleOf(socket: Socket | undefined): WritingHandle | undefined {
  if (socket === undefined || socket.destroyed) return undefined;
  const handle = member(socket, "_handle");
  // With TLS the socket's own handle encrypts, and its parent writes.
  const tcp = member(handle, "_parent") ?? handle;
  return typeof member(tcp, "writeQueueSize") === "number" ? (tcp as WritingHandle) : undefined;
}

function member(from: unknown, name: string): unknown {
  return typeof from === "object" && from !== null ? Reflect.get(from, name) : undefined;
}
