// A real HTTP server that plays the identity provider in tests: honest by default, hostile on request.
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Answers one request. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A signing key with its public half as published by the provider. */
export interface SigningKey {
  readonly alg: "RS256" | "ES256" | "EdDSA";
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly jwk: Record<string, unknown>;
}

/** The provider: its received requests, and its answers. */
export interface TestProvider {
  readonly origin: string;
  /** Paths with queries, in order. */
  readonly requests: string[];
  /** Answers by path; any other path is 404. */
  readonly answers: Map<string, Answer>;
  stop(): Promise<void>;
}

/** Starts a provider on the loopback that answers nothing yet. */
export async function startProvider(): Promise<TestProvider> {
  const requests: string[] = [];
  const answers = new Map<string, Answer>();
  const server: Server = createServer((request, response) => {
    requests.push(request.url ?? "");
    const answer = answers.get((request.url ?? "").split("?", 1)[0] ?? "");
    if (answer === undefined) response.writeHead(404).end();
    else answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answers,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Makes a provider publish itself as an issuer with this key. */
export function answerAsIssuer({ origin, answers }: TestProvider, key: SigningKey): void {
  const found = {
    issuer: origin,
    jwks_uri: `${origin}/jwks`,
    id_token_signing_alg_values_supported: [key.alg],
  };
  answers.set("/.well-known/openid-configuration", json(found));
  answers.set("/jwks", json({ keys: [key.jwk] }));
}

/** Answers with JSON. */
export function json(value: unknown, status = 200): Answer {
  return (_request, response) => {
    response
      .writeHead(status, { "content-type": "application/json; charset=utf-8" })
      .end(JSON.stringify(value));
  };
}

/** Answers with any text. */
export function text(body: string, contentType: string, status = 200): Answer {
  return (_request, response) => {
    response.writeHead(status, { "content-type": contentType }).end(body);
  };
}

/** Makes a key pair. */
export function makeKey(alg: SigningKey["alg"], kid: string): SigningKey {
  const pair =
    alg === "RS256"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : alg === "ES256"
        ? generateKeyPairSync("ec", { namedCurve: "P-256" })
        : generateKeyPairSync("ed25519");
  const jwk = { ...pair.publicKey.export({ format: "jwk" }), kid, alg, use: "sig" };
  return {
    alg,
    kid,
    privateKey: createPrivateKey(pair.privateKey.export({ type: "pkcs8", format: "pem" })),
    jwk,
  };
}

/** Signs claims as a compact JSON Web Token. */
export function signToken(key: SigningKey, claims: object, header: object = {}): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${encode({ alg: key.alg, kid: key.kid, ...header })}.${encode(claims)}`;
  const digest = key.alg === "EdDSA" ? null : "sha256";
  const signature = sign(digest, Buffer.from(input), { key: key.privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}
