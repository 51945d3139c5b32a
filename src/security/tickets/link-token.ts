// Tokens of links: what a link's address holds, which leads to its root and proves the right to it.
import { createHash } from "node:crypto";
import { LINK_TOKEN_PREFIX } from "#base/door-call.ts";
import type { Random } from "#base/random.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const ID_LETTERS = 12;
/** 160 bits. */
const SECRET_LETTERS = 32;
const FORM = new RegExp(
  `^${LINK_TOKEN_PREFIX}([0-9a-hjkmnp-tv-z]{26})_([${LETTERS}]{${ID_LETTERS}})_[${LETTERS}]{${SECRET_LETTERS}}$`,
  "u",
);

/** A new link: the token is shown once, the hash is kept. */
export interface NewLinkToken {
  readonly id: string;
  readonly token: string;
  /** SHA-256 of the token in hex: 160 random bits need no slow hash. */
  readonly hash: string;
}

/** A token as somebody sent it. */
export interface ReadLinkToken {
  readonly id: string;
  /** Where the link is; a ULID. */
  readonly rootId: string;
  readonly hash: string;
}

/** Makes `gl_<root>_<id>_<secret>`. The root's id finds its server wherever the root has moved. */
export function makeLinkToken(random: Random, rootId: string): NewLinkToken {
  const id = letters(random, ID_LETTERS);
  const token = `${LINK_TOKEN_PREFIX}${rootId.toLowerCase()}_${id}_${letters(random, SECRET_LETTERS)}`;
  return { id, token, hash: hashOf(token) };
}

/** Reads what somebody sent; undefined for what is no token. */
export function readLinkToken(text: string): ReadLinkToken | undefined {
  const [, root = "", id = ""] = FORM.exec(text) ?? [];
  return root === "" ? undefined : { id, rootId: root.toUpperCase(), hash: hashOf(text) };
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function letters(random: Random, count: number): string {
  return Array.from(random.bytes(count), (byte) => LETTERS[byte & 31] ?? "").join("");
}
