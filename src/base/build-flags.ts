// Choices of the build; a clone has everything (spec 5.9).
declare const BUILT_WITH_IDP_AUTH: boolean | undefined;

/** False in a program built with USE_IDP_AUTH=0: it has no code for identity providers (D24). */
export const HAS_IDP_AUTH: boolean = typeof BUILT_WITH_IDP_AUTH === "undefined" || BUILT_WITH_IDP_AUTH;

/** The refusal of such a program. */
export const NO_IDP_AUTH_TEXT =
  "this program was built with USE_IDP_AUTH=0, without sign-in by an identity provider";
