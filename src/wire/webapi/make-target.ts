// The allowed make targets of an action: no option, no variable (decision T15).
import { z } from "zod";

const MAKE_TARGET = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A target of make. */
export const makeTarget: z.ZodString = z.string().regex(MAKE_TARGET, "letters, digits, . _ -, at most 64");
