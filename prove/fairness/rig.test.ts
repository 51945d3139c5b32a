// The short form of the rig of one greedy user beside a modest one (F26).
import { testShortForm } from "#prove/short-form.ts";
import { fairness } from "./rig.ts";

testShortForm(fairness);
