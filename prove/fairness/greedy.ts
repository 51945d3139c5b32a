// Entry file of the greedy user's process.
import { takeOrders } from "#prove/attacks/orders.ts";
import { GREEDY_KINDS } from "./greedy-kinds.ts";

takeOrders(GREEDY_KINDS);
