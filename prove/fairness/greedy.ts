// The greedy user as a process of their own.
import { takeOrders } from "#prove/attacks/orders.ts";
import { GREEDY_KINDS } from "./greedy-kinds.ts";

takeOrders(GREEDY_KINDS);
