// Planted bugs for the rig of credentials that must be refused.
import type { PlantedBug } from "#prove/rig.ts";

/** Each accepts or reveals something forbidden. */
export const refusalBugs: readonly PlantedBug[] = [
  {
    name: "hasty-password-comparison",
    is: "the administrator's password is compared by ===",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/identity/admin-password.ts",
        from: "const isEqual = constantTimeEqual(candidate, expected);",
        to: "const isEqual = candidate === expected;",
      },
    ],
  },
  {
    name: "own-comparison-of-join-tokens",
    is: "join tokens are compared by a function of their own",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/authority/join-tokens.ts",
        from: "const isEqual = constantTimeEqual(hashOf(token.secret), expected);",
        to: "const isEqual = hashOf(token.secret).equals(expected);",
      },
    ],
  },
  {
    name: "names-by-splitting",
    is: "a certificate's names are unquoted first and then split at commas (CVE-2021-44532)",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/identity/certificate-rule.ts",
        from: "  const names: string[] = [];\n",
        to: `  const plain = subjectAltName.replaceAll(/"(?:[^"\\\\]|\\\\.)*"/g, (quoted) => String(JSON.parse(quoted)));
  const names: string[] = plain.split(", ").flatMap((each) => (each.startsWith("DNS:") ? [each.slice(4).toLowerCase()] : []));
  if (names.length >= 0) return names;
`,
      },
    ],
  },
  {
    name: "expired-certificate-accepted",
    is: "a certificate's end is left to the handshake, which was long ago",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/identity/certificate-rule.ts",
        from: '  if (nowWallMs > certificate.validToDate.getTime()) return "has expired";\n',
        to: "",
      },
    ],
  },
  {
    name: "certificate-name-by-its-end",
    is: "whatever ends in cluster.local counts as a node's name",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/identity/certificate-rule.ts",
        from: "const NODE_NAME = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|\\*)\\.cluster\\.local$/;",
        to: "const NODE_NAME = /([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|\\*)\\.cluster\\.local$/;",
      },
    ],
  },
  {
    name: "audience-by-inclusion",
    is: "a token for several audiences is accepted when one of them is this cluster",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/identity/claims.ts",
        from: "if (Array.isArray(aud) && allowAudienceList !== true) {",
        to: "if (Array.isArray(aud) && aud.length === 0) {",
      },
      {
        file: "src/security/identity/claims.ts",
        from: "if (audience !== clientId || others.length > 0)",
        to: "if (audience !== clientId && !others.includes(clientId))",
      },
    ],
  },
  {
    name: "session-of-another-address",
    is: "a session is good from every address",
    rigs: ["refusals"],
    edits: [
      {
        file: "src/security/sessions/session-table.ts",
        from: "if (address !== entry.rawAddress && normalizeAddress(address) !== entry.address) {",
        to: "if (address !== entry.rawAddress && normalizeAddress(address) === entry.address) {",
      },
    ],
  },
];
