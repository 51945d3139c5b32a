// The first screen's own words, as the pages make them.
import type { FirstScreen } from "./site.ts";

/** The words of web/words, which belong to the browser's sources and are not checked along with these. */
interface Words {
  calmTitle(nodes: FirstScreen["nodes"]): string;
  answeredText(nodes: FirstScreen["nodes"], nowSeconds: number): string;
}

/** What stands above everything where no alert does, and who answered. */
export async function calm(nodes: FirstScreen["nodes"]): Promise<{ title: string; answered: string }> {
  const words = (await import(new URL("../../web/words/answers.ts", import.meta.url).href)) as Words;
  return {
    title: words.calmTitle(nodes),
    answered: words.answeredText(nodes, Math.floor(Date.now() / 1_000)),
  };
}
