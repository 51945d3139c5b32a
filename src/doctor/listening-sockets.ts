// Reads from Linux's /proc whether a port of this machine listens to other machines.
import { readFileSync } from "node:fs";

/** State LISTEN in /proc/net/tcp. */
const LISTEN = "0A";
/** 127.0.0.0/8 as the kernel prints it, lowest byte first; ::1; and 127.0.0.0/8 inside IPv6. */
const LOOPBACK = /^(?:[0-9A-F]{6}7F|0{24}01000000|0{16}FFFF0000[0-9A-F]{6}7F)$/;

/** True for a listener beyond loopback; undefined without a listener or without /proc. */
export function listensBeyondLoopback(port: number, proc = "/proc"): boolean | undefined {
  const found = [`${proc}/net/tcp`, `${proc}/net/tcp6`].flatMap((path) => addressesOf(path, port));
  return found.length === 0 ? undefined : found.some((address) => !LOOPBACK.test(address));
}

function addressesOf(path: string, port: number): string[] {
  let text: string;
  try {
    text = readFileSync(path, "latin1");
  } catch {
    return [];
  }
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return text.split("\n").flatMap((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    const [address = "", localPort] = local.split(":");
    return state === LISTEN && localPort === hex ? [address] : [];
  });
}
