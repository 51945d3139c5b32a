// `grove group`: groups of people with a root of their own; one verb here for each thing to do.
import { Command } from "commander";
import { withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { GROUP_ROLES } from "#security/policy/group.ts";
import { type AdministrationFlags, withAdministrationFlags } from "./administration.ts";
import {
  addToGroup,
  type ChangeFlags,
  type CreateFlags,
  createGroup,
  deleteGroup,
  listGroups,
  removeFromGroup,
  showGroup,
} from "./group-verbs.ts";

type Examples = readonly (readonly [line: string, what: string])[];

/** Lines of the examples below the help, each verb's most usual one. */
const EXAMPLES: Examples = [
  ["grove group create atlas --quota 10GB", "a root of its own: atlas@group:/"],
  ["grove group add atlas dave@example.com --role write", "by hand"],
  ["grove group add atlas --claim engineering --role read", "all whose sign-in names that group"],
  ["grove group show atlas", "who is in it, and by what"],
  ["grove put plan.odt atlas@group:/plan.odt", "what members do there"],
];

/** Makes the parser of `grove group` with its verbs. */
export function command(host: CommandHost = processHost()): Command {
  const width = Math.max(0, ...EXAMPLES.map(([line]) => line.length));
  const examples = EXAMPLES.map(([line, what]) => `  ${line.padEnd(width)}   ${what}`);
  const group = new Command("group")
    .summary("Groups of people who share a root")
    .description("Make groups with a root of their own, and say who may read, write or manage it.")
    .addHelpText("after", `\nExamples:\n${examples.join("\n")}`);
  for (const verb of [createVerb, listVerb, showVerb, addVerb, removeVerb, deleteVerb]) {
    group.addCommand(verb(host));
  }
  return group;
}

function createVerb(host: CommandHost): Command {
  return verb("create", "Make a group and its root. For administrators.", [
    ["grove group create atlas --quota 10GB", "the root is atlas@group:/"],
  ])
    .argument("<name>", "lower-case letters, digits, dots and dashes")
    .option("--quota <size>", "quota of the root, such as 500MiB or 1T (default: everybody's default)")
    .option("--with-files", "open the files of an earlier group of that name to the new members", false)
    .action((name: string, flags: CreateFlags) =>
      host.run("group create", flags, (context) => createGroup(context, name, flags)),
    );
}

function listVerb(host: CommandHost): Command {
  return verb("list", "List your groups; administrators see all of them.", [
    ["grove group list", "with your role in each"],
  ]).action((flags: AdministrationFlags) =>
    host.run("group list", flags, (context) => listGroups(context, flags)),
  );
}

function showVerb(host: CommandHost): Command {
  return verb("show", "Show who is in a group, by hand or by claim. For its members and administrators.", [
    ["grove group show atlas", "members, roles, and where the root is"],
  ])
    .argument("<name>", "the group")
    .action((name: string, flags: AdministrationFlags) =>
      host.run("group show", flags, (context) => showGroup(context, name, flags)),
    );
}

function addVerb(host: CommandHost): Command {
  return verb(
    "add",
    "Add a member, or change the role, for members who manage and administrators; or add a claim, for administrators.",
    [
      ["grove group add atlas dave@example.com --role write", "reads, changes and deletes"],
      ["grove group add atlas --claim engineering --role read", "from each person's next sign-in on"],
    ],
  )
    .argument("<name>", "the group")
    .argument("[user]", "e-mail address of the member")
    .requiredOption("--role <role>", `${GROUP_ROLES.join(", ")}: manage also shares and adds members`)
    .option("--claim <value>", "everybody whose ID token names this value, instead of one user")
    .action((name: string, user: string | undefined, flags: ChangeFlags & { readonly role: string }) =>
      host.run("group add", flags, (context) => addToGroup(context, { name, user }, flags)),
    );
}

function removeVerb(host: CommandHost): Command {
  return verb("remove", "Remove a member by hand, or a claim with all whom it makes members.", [
    ["grove group remove atlas dave@example.com", "uploads of dave end as well"],
    ["grove group remove atlas --claim engineering", "for administrators"],
  ])
    .argument("<name>", "the group")
    .argument("[user]", "e-mail address of the member")
    .option("--claim <value>", "a claim instead of one user")
    .action((name: string, user: string | undefined, flags: ChangeFlags) =>
      host.run("group remove", flags, (context) => removeFromGroup(context, { name, user }, flags)),
    );
}

function deleteVerb(host: CommandHost): Command {
  return verb("delete", "End all roles of a group; its files stay. For administrators.", [
    ["grove group delete atlas", "nobody reaches the files, and they still count for the disk"],
    ['grove user remove atlas@group --reason "done"', "the files go too, in 30 days"],
  ])
    .argument("<name>", "the group")
    .action((name: string, flags: AdministrationFlags) =>
      host.run("group delete", flags, (context) => deleteGroup(context, name, flags)),
    );
}

function verb(name: string, description: string, examples: Examples): Command {
  return withAdministrationFlags(
    withClientFlags(new Command(name).summary(description).description(description), examples),
  );
}
