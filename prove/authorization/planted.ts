// Planted bugs for the authorization rig.
import type { PlantedBug } from "#prove/rig.ts";

/** What the authorization rig must find. */
export const authorizationBugs: readonly PlantedBug[] = [
  {
    name: "reading-passwords-write",
    is: "an app password for reading alone is asked for its folder only",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: `  return access === "read" && permission !== "read" ? READ_ONLY : ALLOWED;`,
        to: `  return access === "read" && permission === "delete" ? READ_ONLY : ALLOWED;`,
      },
    ],
  },
  {
    name: "passwords-leave-their-folder",
    is: "an app password for a folder holds in the whole root",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: "    if (depth < 0 || way === undefined) return OUTSIDE_FOLDER;",
        to: "    if (owner !== username || way === undefined) return OUTSIDE_FOLDER;",
      },
    ],
  },
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
        from: "    this.#require(decide(caller, permission, target, adminUsername));\n",
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
        file: "src/base/names.ts",
        from: "place.startsWith(`${path}/`)",
        to: "place.startsWith(path)",
      },
      {
        file: "src/fileserver/operations/access.ts",
        from: "    this.#require(decide(caller, permission, target, adminUsername));\n",
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
        from: "      return caller.username === target.owner || heirOf(caller, target)?.mayDelete === true",
        to: "      return isSharer(caller, target) || heirOf(caller, target)?.mayDelete === true",
      },
    ],
  },
  {
    name: "engine-does-not-tell-of-shares",
    is: "a commit to the shared engine does not tell whose grants it has changed, so that an ended share stays cached",
    rigs: ["authorization-over-engine"],
    edits: [
      {
        file: "src/storage/shared/shared-writer.ts",
        from: "    if (owners.length > 0) this.#deps.sharesChanged?.(owners);\n",
        to: "",
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
