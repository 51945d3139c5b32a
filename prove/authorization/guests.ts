// Visitors by links to what lies in the root of a group or of a person, for the authorization rig.
import { LINK_VISIT_HEADER, PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { reasonOf, type SignedIn } from "#prove/served-node.ts";
import type { Check, Guest } from "./cast.ts";
import { type Entry, isIn, type Oracle } from "./oracle.ts";

/** Visitors that a run asks as; the oldest makes room. */
const GUESTS_MAX = 30;
const AT = "198.51.100.8";
const DAY_MS = 86_400_000;

/** Makes a link as its owner or manager, and comes by it. */
export async function comeByLink(
  guests: Guest[],
  { by, owner, path, entry }: { by: SignedIn; owner: string; path: string; entry: Entry },
  isDrop: boolean,
): Promise<void> {
  const limits = { endsMs: BigInt(Date.now() + DAY_MS), maxBytes: 1_000_000n, maxFiles: 10n };
  const wanted = { root: owner, path, drop: isDrop, ...(isDrop && limits) };
  const { token, link } = await by.calls.createLink(wanted, by);
  const { sessionToken } = await by.calls.registerClient(
    { link: { token, visitor: "visitor000000001" } },
    { metadata: { [PERSON_ADDRESS_HEADER]: AT } },
  );
  const metadata = {
    authorization: `Bearer ${sessionToken}`,
    [PERSON_ADDRESS_HEADER]: AT,
    [LINK_VISIT_HEADER]: "1",
  };
  const linkId = link?.id ?? "";
  guests.push({ owner, entry, isDrop, linkId, calls: by.calls, as: { metadata }, isOver: false });
  if (guests.length > GUESTS_MAX) guests.shift();
}

/** Asks below a link, as its visitor, for what it gives and for what it does not. */
export function guestCheck(
  { oracle, random }: { readonly oracle: Oracle; readonly random: SeededRandom },
  guest: Guest,
  answerAt: (oracle: Oracle, owner: string, path: string, call: string) => string,
): Check {
  const { owner, calls, as } = guest;
  const call = random.pick(["attr", "list", "read", "get", "create", "trash", "share"] as const);
  const first = oracle.placeOf(owner, guest.entry);
  const inside = first === undefined ? [] : oracle.paths(owner).filter((path) => isIn(path, first));
  const below = random.pick([...inside.map((path) => path.slice(first?.length)), "/none"]);
  const path = below === "" ? "/" : below;
  // A visitor names no root; one who does is not heard.
  const root = random.pick(["", owner, "user0@example.com"]);
  const asked = {
    attr: () => calls.getAttr({ root, path }, as),
    list: () => calls.listDir({ root, path }, as),
    read: () => calls.readFile({ root, path }, as),
    get: async () => {
      const parts = await Array.fromAsync(calls.downloadFile({ root, path }, as));
      return {
        parts: parts.map(({ part }) => (part.case === "chunk" ? Buffer.from(part.value.data) : Buffer.of())),
      };
    },
    create: () => calls.createFile({ root, path: `${below}/none/new` }, as),
    trash: () => calls.trashFile({ root, path }, as),
    share: () => calls.share({ root, path, user: "user0@example.com" }, as),
  } as const;
  const ask = async (): Promise<string> => {
    try {
      const answer = await asked[call]();
      return "parts" in answer ? `ok ${Buffer.concat(answer.parts).toString()}` : "ok";
    } catch (error) {
      const reason = reasonOf(error);
      // The session of a link that has ended is over as well, a second later at most.
      return reason.startsWith("SESSION_") ? "NOT_SHARED" : reason;
    }
  };
  const wanted = (): string => {
    const at = oracle.placeOf(owner, guest.entry);
    const isOver = guest.isOver || oracle.groups.isClosed(owner) || at === undefined;
    // ReadFile is no call of visitors: their downloads are counted.
    if (isOver || guest.isDrop || !["attr", "list", "get"].includes(call)) return "NOT_SHARED";
    return answerAt(oracle, owner, at + below, call === "get" ? "read" : call);
  };
  const kind = guest.isDrop ? "drop" : "read";
  return { what: `${call} of ${below} below a link to ${kind} in ${owner}`, ask, wanted };
}
