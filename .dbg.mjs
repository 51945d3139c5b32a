const { mutations } = await import("./prove/mutations/rig.ts");
const { Campaign } = await import("./prove/campaign.ts");
const gp = await import("./prove/small-cluster.ts");
const r = await Campaign.run({ ...mutations }, { seed: 3, goal: 6000, timeMs: 60000 });
console.log(JSON.stringify(r).slice(0, 1500));
