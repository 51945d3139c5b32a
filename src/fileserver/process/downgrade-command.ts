// `grove downgrade`: takes a stopped node's data back to an older Grove, with what has changed since.
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { GroveError } from "#base/errors.ts";
import { dropInodeLimits } from "#quota/quota-downgrade.ts";
import { USER_STATES_FILE, UserStateStore } from "#security/identity/user-state-store.ts";
import { downgradeData, schemaOfRelease } from "#storage/backup/downgrade.ts";

/** The first schema beside which `quota_config.json` may hold limits of files. */
const SCHEMA_WITH_INODE_LIMITS = 10;
/** The first schema after the last release that knows no decisions about users. */
const SCHEMA_WITH_USER_STATES = 8;
/** Users who are named one by one. */
const USERS_SHOWN = 20;

interface Flags {
  readonly data: string;
  readonly to?: string;
  readonly schema?: number;
}

const HELP = `
Run it with the newer Grove, while the node is stopped; then start the older one on the folder. Files, folders, shares,
trash, begun uploads and quotas stay, also those that have come since the upgrade. What the older Grove cannot keep is
named: links for people without an account, properties and locks of WebDAV programs, and limits of files. It refuses
where going back would open a folder that was taken out of a share, or while a root moves. Users who are locked out or
removed are named: 0.1.0 knows nothing of that and lets them in. The MetaServer's store has a copy of its own; see
"Upgrading" in docs/operating.md.

Examples:
  grove downgrade -data /srv/grove -to 0.1.0
  grove downgrade -data /srv/grove -schema 13      the schema that the older Grove named when it refused the folder

Exit code: 0 when the folder is the older Grove's; 1 when something hinders it, which is named; 3 when there is no data
folder, 8 when a running node holds it. Only with 0 has anything changed.`;

/** The parser of `grove downgrade`. */
export function command(): Command {
  return new Command("downgrade")
    .summary("Take a stopped node's data back to an older Grove")
    .description("Take the data folder of a stopped storage node back to an older Grove.")
    .requiredOption("--data <folder>", "the node's data folder")
    .option("--to <version>", "the older Grove, such as 0.1.0")
    .option("--schema <number>", "the schema that the older Grove knows", parseSchema)
    .addHelpText("after", HELP)
    .action(async ({ data, to, schema }: Flags) => {
      if ((to === undefined) === (schema === undefined)) {
        throw new GroveError("BAD_ARGUMENT", "name the older Grove with -to, or its schema with -schema");
      }
      const wanted = schema ?? schemaOfRelease(to ?? "");
      const lockedOut = wanted < SCHEMA_WITH_USER_STATES ? await lockedOutUsers(data) : [];
      const lost = [...downgradeData(data, wanted)];
      if (wanted < SCHEMA_WITH_INODE_LIMITS) {
        const limits = await dropInodeLimits(data);
        if (limits > 0) lost.push(`limits of files of ${limits} users`);
      }
      const loss = lost.length === 0 ? "" : ` It cannot keep these, which are gone: ${lost.join(", ")}.`;
      process.stdout.write(
        `${data} has schema ${wanted} now: start the older Grove on it.${loss}${lockText(lockedOut)}\n`,
      );
    });
}

/** Users whom this node keeps out. Throws CORRUPT where nobody can tell. */
async function lockedOutUsers(data: string): Promise<string[]> {
  const { states } = await UserStateStore.open(join(data, USER_STATES_FILE));
  return states.list().flatMap(({ username, disabled }) => (disabled ? [username] : []));
}

function lockText(users: readonly string[]): string {
  if (users.length === 0) return "";
  const more = users.length > USERS_SHOWN ? `, and ${users.length - USERS_SHOWN} more` : "";
  return (
    " It knows nothing of users who are locked out, and lets them in: before you start it, close their accounts at the " +
    `identity provider (${users.slice(0, USERS_SHOWN).join(", ")}${more}).`
  );
}

function parseSchema(text: string): number {
  const schema = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : undefined;
  if (schema === undefined) throw new InvalidArgumentError("It is a number from 1 on.");
  return schema;
}
