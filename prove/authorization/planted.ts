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
        from: "    if (owners.length > 0) this.#tried(() => this.#deps.sharesChanged?.(owners));\n",
        to: "",
      },
    ],
  },
  {
    name: "readers-write-in-groups",
    is: "a member's role counts as a share does, which is to read and to write",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: "  return heir.readOnly === true ? READER : ALLOWED;",
        to: "  return ALLOWED;",
      },
    ],
  },
  {
    name: "readers-delete-in-groups",
    is: "every member of a group deletes and sees its trash",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: `    mayDelete: role !== "read",`,
        to: `    mayDelete: true,`,
      },
    ],
  },
  {
    name: "writers-share-in-groups",
    is: "who may write in a group may share its files and make links to them",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: `    mayShare: role === "manage",`,
        to: `    mayShare: role !== "read",`,
      },
    ],
  },
  {
    name: "former-members-stay",
    is: "a node adds to what it knows of roles, and keeps members who have none any more",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/identity/known-groups.ts",
        from: "    const byUser = new Map<string, (readonly [string, RoleGrant])[]>();",
        to: "    const byUser = new Map([...(this.#byUser ?? [])].map(([user, own]) => [user, [...own]] as const));",
      },
    ],
  },
  {
    name: "deleted-groups-keep-shares",
    is: "the end of a group ends roles alone, and what members have shared stays open",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/fileserver/operations/file-service.ts",
        from: "  if (group !== undefined && !groups.has(group)) return true;\n",
        to: "  if (group === undefined) return userStates.states.closesShares(owner, clock.wallMs());\n  groups.has(group);\n",
      },
    ],
  },
  {
    name: "old-tokens-give-roles",
    is: "the token that comes last counts, and not the one that was issued last",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/metaserver/process/group-gate.ts",
        from: "    if (issuedMs < latestMs) return;\n",
        to: "",
      },
      {
        file: "src/metaserver/process/group-gate.ts",
        from: "    if (issuedMs < (known?.issuedMs ?? issuedMs)) return;\n",
        to: "",
      },
      {
        file: "src/metaserver/directory/group-commands.ts",
        from: "  if (known !== undefined && known.issuedMs > record.issuedMs) return;\n",
        to: "",
      },
    ],
  },
  {
    name: "folder-passwords-hold-in-groups",
    is: "an app password for a folder is asked for that in its owner's root alone",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/security/policy/decide.ts",
        from: "  if (folderId !== undefined) {\n    const depth = owner === username ?",
        to: "  if (folderId !== undefined && owner === username) {\n    const depth = owner === username ?",
      },
    ],
  },
  {
    name: "managers-add-claims",
    is: "who manages a group may let people in by a claim, as administrators do",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/metaserver/process/group-routes.ts",
        from: `  if (!asker.isAdmin && !(isOfMember && groups.roleOf(asker.name, name) === "manage")) {`,
        to: `  if (!asker.isAdmin && groups.roleOf(asker.name, name) !== "manage") {`,
      },
    ],
  },
  {
    name: "groups-seen-by-strangers",
    is: "a group is shown to a person without a role in it",
    rigs: ["authorization"],
    edits: [
      {
        file: "src/metaserver/process/group-routes.ts",
        from: "  if (!asker.isAdmin && groups.roleOf(asker.name, name) !== undefined) return;\n",
        to: "  if (!asker.isAdmin && groups.has(name)) return;\n",
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
