// The two audiences of the console: operators, and visitors who have not signed in (spec 5.8.4, D22).

/** An audience of the console. */
export type Audience = "operator" | "visitor";

/** Both audiences. */
export const AUDIENCES: readonly Audience[] = ["visitor", "operator"];
