// Entry file of the process that makes the attacks of unproven callers.
import { takeOrders } from "./orders.ts";
import { UNPROVEN_KINDS } from "./unproven-kinds.ts";

takeOrders(UNPROVEN_KINDS);
