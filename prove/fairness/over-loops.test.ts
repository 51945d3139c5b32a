// The short form of the rig of one greedy user, against a node whose connections two threads serve (F26, D26).
import { testShortForm } from "#prove/short-form.ts";
import { fairness } from "./rig.ts";

process.env["GROVE_RIG_LOOPS"] = "2";
testShortForm(fairness);
