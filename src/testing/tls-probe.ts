// Finds out what a TLS listener agrees to, one property at a time.
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";

/** The result of a handshake. */
export interface Agreed {
  readonly version: string;
  /** OpenSSL's name of the suite. */
  readonly suite: string;
  /** Group of the key exchange; undefined where Node cannot say. */
  readonly group: string | undefined;
}

/**
 * Shakes hands with a listener of this machine without checking its certificate; undefined when it refuses.
 */
export function agreeOn(port: number, options: ConnectionOptions): Promise<Agreed | undefined> {
  return new Promise((resolve) => {
    let socket: TLSSocket;
    const end = (agreed: Agreed | undefined): void => {
      socket.destroy();
      resolve(agreed);
    };
    try {
      socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options }, () => {
        const { name } = socket.getEphemeralKeyInfo() as { name?: string };
        end({ version: socket.getProtocol() ?? "", suite: socket.getCipher().name, group: name });
      });
    } catch {
      // This machine's own library does not know the requested property.
      resolve(undefined);
      return;
    }
    socket.on("error", () => end(undefined));
  });
}

/** True where a listener takes a second handshake of TLS 1.2 on one connection. */
export function renegotiates(port: number, options: ConnectionOptions = {}): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const given = { host: "127.0.0.1", port, rejectUnauthorized: false, maxVersion: "TLSv1.2" } as const;
    const socket = connect({ ...given, ...options }, () => {
      const end = (isTaken: boolean): void => {
        socket.destroy();
        resolve(isTaken);
      };
      socket.off("error", reject);
      socket.on("error", () => end(false));
      socket.renegotiate({ rejectUnauthorized: false }, (error) => end(error === null));
    });
    socket.on("error", reject);
  });
}

/**
 * Every suite of TLS 1.2 that the listener takes, in its order of preference, of all that OpenSSL knows,
 * forbidden and empty ones included.
 */
export async function suitesOfTls12(port: number, options: ConnectionOptions = {}): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    const ciphers = ["ALL", "COMPLEMENTOFALL", "@SECLEVEL=0", ...taken.map((suite) => `!${suite}`)].join(":");
    const agreed = await agreeOn(port, { ...options, maxVersion: "TLSv1.2", ciphers });
    if (agreed === undefined || taken.includes(agreed.suite)) return taken;
    taken.push(agreed.suite);
  }
}
