// The HTTP/2 server below gRPC: settings, certificates, and sockets with other protocols.
import { constants as cryptoConstants } from "node:crypto";
import { createSecureServer, createServer, type Http2SecureServer, type Http2Server } from "node:http2";
import type { Socket } from "node:net";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { TLS_LISTENER_POLICY } from "#base/tls-policy.ts";
import {
  FRAME_BYTES,
  RESETS_AT_ONCE,
  RESETS_PER_SECOND,
  SESSION_MEMORY_MIB,
  type ServerLimits,
  STREAMS_PER_PLACE,
} from "#wire/framing/limits.ts";

/**
 * Certificates of a server. Give `ca` for client certificates: without it the public roots would be trusted.
 */
export interface ServerTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  /** Requests a client certificate without requiring one: handlers see it in `peer.certificate`. */
  readonly requestClientCertificate?: boolean;
}

/** Makes the server, which gets its sockets by "connection" events and listens on no port. */
export function createHttp(
  limits: ServerLimits,
  tls: ServerTls | undefined,
  onError: (error: unknown) => void,
): Http2Server | Http2SecureServer {
  const options = {
    maxSessionMemory: SESSION_MEMORY_MIB,
    streamResetBurst: RESETS_AT_ONCE,
    streamResetRate: RESETS_PER_SECOND,
    settings: {
      enablePush: false,
      initialWindowSize: limits.streamWindowBytes,
      maxConcurrentStreams: limits.maxConcurrentStreams * STREAMS_PER_PLACE,
      maxHeaderListSize: limits.maxHeaderListBytes,
      maxFrameSize: FRAME_BYTES,
    },
  };
  const http =
    tls === undefined
      ? createServer(options)
      : createSecureServer({
          ...options,
          ...contextOf(tls),
          allowHTTP1: false,
          handshakeTimeout: limits.handshakeMs,
          requestCert: tls.requestClientCertificate === true,
          rejectUnauthorized: false,
        });
  http.on("sessionError", onError);
  http.on("tlsClientError", (error: Error, socket: Socket) => {
    socket.destroy();
    onError(error);
  });
  http.on("unknownProtocol", (socket: Socket) => socket.destroy());
  return http;
}

/**
 * Certificates for new connections. Without `ca`, setSecureContext trusts public roots; the constructor does
 * not.
 */
export function contextOf(tls: ServerTls): SecureContextOptions {
  return {
    cert: tls.cert,
    key: tls.key,
    ...(tls.ca === undefined ? {} : { ca: tls.ca as string | Buffer }),
    ...TLS_LISTENER_POLICY,
    // A resumed session would keep the first verdict on a client's certificate.
    secureOptions: TLS_LISTENER_POLICY.secureOptions | cryptoConstants.SSL_OP_NO_TICKET,
  };
}

/** Throws OpenSSL's error for certificates that no server can use. */
export function requireUsable(tls: ServerTls): void {
  createSecureContext(contextOf(tls));
}
