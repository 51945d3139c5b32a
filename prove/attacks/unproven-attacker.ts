// Callers who have proven nothing, all in a process of their own.
import { takeOrders } from "./orders.ts";
import { UNPROVEN_KINDS } from "./unproven-kinds.ts";

takeOrders(UNPROVEN_KINDS);
