// Small real files for previews: a PDF of three pages, and a picture and a video that the browser itself makes.
import type { Page } from "playwright-core";

/** A PDF whose pages say their number. */
export function samplePdf(pages: number): Buffer {
  const objects: string[] = [];
  const kids = Array.from({ length: pages }, (_, index) => `${4 + 2 * index} 0 R`).join(" ");
  objects.push("<< /Type /Catalog /Pages 2 0 R >>");
  objects.push(`<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`);
  objects.push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
  for (let index = 0; index < pages; index++) {
    const text = `BT /F1 36 Tf 72 720 Td (Orchard report, page ${index + 1}) Tj ET`;
    const place = "/MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>";
    objects.push(`<< /Type /Page /Parent 2 0 R ${place} /Contents ${5 + 2 * index} 0 R >>`);
    objects.push(`<< /Length ${text.length} >>\nstream\n${text}\nendstream`);
  }
  let file = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(file, "latin1");
}

/** A PNG that the browser draws, in one of some hues. */
export async function samplePicture(page: Page, hue: number): Promise<Buffer> {
  const blank = await page.context().newPage();
  try {
    await blank.setViewportSize({ width: 480, height: 320 });
    await blank.setContent(
      `<body style="margin:0;background:linear-gradient(${hue}deg,hsl(${hue} 50% 75%),hsl(${hue + 60} 45% 35%))">
      <div style="position:absolute;inset:55% 0 0;background:hsl(${hue + 90} 35% 30%);border-radius:50% 60% 0 0"></div>`,
    );
    return await blank.screenshot();
  } finally {
    await blank.close();
  }
}

const RECORD = `(async () => {
  const canvas = document.createElement("canvas");
  canvas.width = 320; canvas.height = 180;
  const pen = canvas.getContext("2d");
  const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: "video/webm;codecs=vp8" });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((resolve) => { recorder.onstop = resolve; });
  recorder.start();
  for (let frame = 0; frame < 20; frame++) {
    pen.fillStyle = "hsl(" + frame * 18 + " 60% 50%)";
    pen.fillRect(0, 0, 320, 180);
    await new Promise(requestAnimationFrame);
  }
  recorder.stop();
  await ended;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
})()`;

/** A WebM video of less than a second that the browser records. */
export async function sampleVideo(page: Page): Promise<Buffer> {
  const blank = await page.context().newPage();
  try {
    await blank.setContent("<title>record</title>");
    return Buffer.from(await blank.evaluate<string>(RECORD), "base64");
  } finally {
    await blank.close();
  }
}
