// Planted bugs for the authorization rig.
import type { PlantedBug } from "#prove/rig.ts";

/** What the authorization rig must find. */
export const authorizationBugs: readonly PlantedBug[] = [
  {
    name: "revoked-share-stays-cached",
    is: "who was let in is remembered, and an ended share does not clear it",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/storage/local/share-store.ts",
        from: "    for (const owner of owners) this.#known.delete(owner);\n",
        to: "",
      },
      {
        file: "src/fileserver/operations/access.ts",
        from: "    this.#require(decide(caller, permission, { owner, shared: resolution.shared, heirs }, adminUsername));\n",
        to: "",
      },
    ],
  },
  {
    name: "share-by-prefix-of-name",
    is: "a share of /a lets in at /ab as well",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/fileserver/operations/access.ts",
        from: "place.startsWith(`${path}/`)",
        to: "place.startsWith(path)",
      },
      {
        file: "src/fileserver/operations/access.ts",
        from: "    this.#require(decide(caller, permission, { owner, shared: resolution.shared, heirs }, adminUsername));\n",
        to: "",
      },
    ],
  },
  {
    name: "sharees-may-delete",
    is: "whoever may write may also delete",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: "      return caller.username === target.owner ? ALLOWED : NOT_OWNER;",
        to: "      return caller.username === target.owner || target.shared.includes(caller.username) ? ALLOWED : NOT_OWNER;",
      },
    ],
  },
  {
    name: "session-from-anywhere",
    is: "a session is not held to its address",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/sessions/session-table.ts",
        from: "if (address !== entry.rawAddress && normalizeAddress(address) !== entry.address) {",
        to: 'if (address === "") {',
      },
    ],
  },
];
