// Allowed branch names of an action: no option, range or special character of git or a shell (T15, E-02).
import { z } from "zod";

const BRANCH = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/;
const BRANCH_REFUSED = /\.\.|\/\/|\/\.|\.(?:\/|$)|\/$|\.lock(?:\/|$)/;

/** The name of a branch. */
export const branchName: z.ZodString = z
  .string()
  .regex(BRANCH, "letters, digits, . _ / -, at most 200, a letter or digit first")
  .refine((name) => !BRANCH_REFUSED.test(name), "no such branch can be");
