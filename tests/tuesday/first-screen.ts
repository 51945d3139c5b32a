// The words of the first screen, as the pages make them.
import type { FirstScreen } from "./site.ts";

/** Functions of web/words, which belong to the browser's sources and are not type-checked with these. */
interface Words {
  calmTitle(nodes: FirstScreen["nodes"]): string;
  answeredText(nodes: FirstScreen["nodes"], nowSeconds: number): string;
}

/** The headline without an alert, and the nodes that answered. */
export async function calm(nodes: FirstScreen["nodes"]): Promise<{ title: string; answered: string }> {
  const words = (await import(new URL("../../web/words/answers.ts", import.meta.url).href)) as Words;
  return {
    title: words.calmTitle(nodes),
    answered: words.answeredText(nodes, Math.floor(Date.now() / 1_000)),
  };
}
