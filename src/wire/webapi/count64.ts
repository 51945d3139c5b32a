// A count of 64 bits in the console's JSON: a number up to 2^53 - 1, else a decimal string (decision T17).
import { z } from "zod";

const DECIMAL = /^(?:0|[1-9]\d{0,19})$/;

/** A count as answers carry it: a number up to 2^53 - 1, else a decimal string. */
export const count64 = z.union([z.int(), z.string().regex(DECIMAL)]);
