// Secrets that doors take: app passwords of WebDAV programs, and sessions of browsers.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { APP_PASSWORD_PREFIX, DOOR_SESSION_PREFIX } from "#base/door-call.ts";
import type { Random } from "#base/random.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const ID_LETTERS = 12;
/** 160 bits. */
const SECRET_LETTERS = 32;
const CHECKSUM_LETTERS = 6;
const FORM = new RegExp(
  `^(${APP_PASSWORD_PREFIX}|${DOOR_SESSION_PREFIX})([${LETTERS}]{${ID_LETTERS}})_([${LETTERS}]{${SECRET_LETTERS}})([${LETTERS}]{${CHECKSUM_LETTERS}})$`,
  "u",
);

/** What a secret is for: a program, or a browser. */
export type DoorSecretKind = "app" | "browser";

/** A new secret: the text is shown once, the hash is kept. */
export interface NewDoorSecret {
  readonly id: string;
  readonly text: string;
  /** SHA-256 of the text: 160 random bits need no slow hash. */
  readonly hash: Buffer;
}

/** A secret as somebody sent it. */
export interface ReadDoorSecret {
  readonly kind: DoorSecretKind;
  readonly id: string;
  readonly hash: Buffer;
}

/** Makes `gap_<id>_<secret><checksum>`. */
export function makeAppPassword(random: Random): NewDoorSecret {
  return make(APP_PASSWORD_PREFIX, letters(random.bytes(ID_LETTERS)), random);
}

/** Makes `gds_<id>_<secret><checksum>`, with an id of that name's own where it has one. */
export function makeDoorSession(random: Random, idOf?: string): NewDoorSecret {
  const idBytes = idOf === undefined ? random.bytes(ID_LETTERS) : createHash("sha256").update(idOf).digest();
  return make(DOOR_SESSION_PREFIX, letters(idBytes.subarray(0, ID_LETTERS)), random);
}

/** Reads what somebody sent; undefined where its form or checksum is wrong, which costs no look-up. */
export function readDoorSecret(text: string): ReadDoorSecret | undefined {
  const found = FORM.exec(text);
  const [, prefix, id = "", , checksum = ""] = found ?? [];
  if (found === null || checksumOf(text.slice(0, -CHECKSUM_LETTERS)) !== checksum) return undefined;
  return { kind: prefix === DOOR_SESSION_PREFIX ? "browser" : "app", id, hash: hashOf(text) };
}

function make(prefix: string, id: string, random: Random): NewDoorSecret {
  const stem = `${prefix}${id}_${letters(random.bytes(SECRET_LETTERS))}`;
  const text = stem + checksumOf(stem);
  return { id, text, hash: hashOf(text) };
}

function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Shows a slip of the fingers; it is no secret and proves nothing. */
function checksumOf(stem: string): string {
  let rest = crc32(stem);
  let text = "";
  for (let place = 0; place < CHECKSUM_LETTERS; place++) {
    text += LETTERS[rest & 31] ?? "";
    rest >>>= 5;
  }
  return text;
}

function letters(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => LETTERS[byte & 31] ?? "").join("");
}
