// The version of this program, as package.json names it.
import manifest from "#package.json" with { type: "json" };

/** Version of Grove, for `grove --version`, client_version and server_version (decision D18). */
export const VERSION: string = manifest.version;
