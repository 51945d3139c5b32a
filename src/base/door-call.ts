// What a door tells of the person behind a call, in metadata that only a door's certificate may use.

/** Metadata with the IP address of the person for whom a door calls. */
export const PERSON_ADDRESS_HEADER = "svc-person-address";

const ADDRESS = /^[0-9a-f.:]{2,45}$/i;

/** The address in that metadata; undefined for text that is none. */
export function personAddressFrom(value: string | undefined): string | undefined {
  return value !== undefined && ADDRESS.test(value) ? value : undefined;
}

/** Metadata of calls for a visitor by a link, whose sessions are kept apart from those of people. */
export const LINK_VISIT_HEADER = "svc-link-visit";

/** What the token of a link begins with. */
export const LINK_TOKEN_PREFIX = "gl_";

/** What an app password begins with; ID tokens and session tokens never do. */
export const APP_PASSWORD_PREFIX = "gap_";

/** What the secret of a browser's session at a door begins with. */
export const DOOR_SESSION_PREFIX = "gds_";

/** True for what doors alone bring to a MetaServer in a person's name. */
export function isDoorSecret(text: string): boolean {
  return text.startsWith(APP_PASSWORD_PREFIX) || text.startsWith(DOOR_SESSION_PREFIX);
}

/**
 * The name that stands in the list of ended credentials for all that doors opened for a user before the end's moment.
 * No credential has it: those begin with "app:" or "browser:". FileServers without this rule pass over it.
 */
export function endsOfUser(username: string): string {
  return `user:${username}`;
}
