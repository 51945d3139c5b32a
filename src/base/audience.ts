// The two audiences of the console: operators, and visitors who have not signed in (spec 5.8.4, D22).

/** Whose view it is. */
export type Audience = "operator" | "visitor";

/** Both of them. */
export const AUDIENCES: readonly Audience[] = ["visitor", "operator"];
