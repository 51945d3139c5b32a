// A PDF, drawn by pdf.js page by page as one scrolls: its bytes come by range, and nothing in it runs.
import { getDocument, type PDFDocumentProxy, PDFWorker } from "pdfjs-dist";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { startPdfWorker } from "./pdf-thread.ts";
import { counted } from "./words.ts";

const RANGE_BYTES = 262_144;
const MARGIN_PX = 600;
const DENSITY_MAX = 2;
/** Dots of a canvas: telephones draw no larger ones. */
const DOTS_MAX = 8_000_000;

/** Shows the file at an address. */
export default function PdfPreview({ source }: { readonly source: string }): ReactNode {
  const { file, problem } = usePdf(source);
  if (problem !== undefined)
    return (
      <p className="problem" role="alert">
        ■ {problem}
      </p>
    );
  if (file === undefined) return <p>Reading the PDF …</p>;
  return (
    <>
      <p className="quiet">{counted(file.numPages, "page")}</p>
      {/* Scrolled by the keyboard too, which needs the focus. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="pdf" role="region" tabIndex={0} aria-label="Pages of the PDF">
        {Array.from({ length: file.numPages }, (_, index) => (
          <PdfPage key={index} file={file} number={index + 1} />
        ))}
      </div>
    </>
  );
}

function usePdf(source: string): { readonly file?: PDFDocumentProxy; readonly problem?: string } {
  const [state, setState] = useState<{ file?: PDFDocumentProxy; problem?: string }>({});
  useEffect(() => {
    let isGone = false;
    const thread = startPdfWorker();
    const worker = PDFWorker.create({ port: thread });
    const loading = getDocument({
      url: source,
      worker,
      rangeChunkSize: RANGE_BYTES,
      disableAutoFetch: true,
      disableStream: true,
      useSystemFonts: true,
      useWasm: false,
      enableXfa: false,
      stopAtErrors: false,
    });
    loading.promise.then(
      (file) => !isGone && setState({ file }),
      (error: unknown) => !isGone && setState({ problem: wordsOf(error) }),
    );
    return () => {
      isGone = true;
      void loading.destroy().finally(() => {
        worker.destroy();
        thread.terminate();
      });
    };
  }, [source]);
  return state;
}

function wordsOf(error: unknown): string {
  const name = error instanceof Error ? error.name : "";
  if (name === "PasswordException") return "This PDF asks for a password. Download it to open it.";
  if (name === "InvalidPDFException") return "This is no PDF that can be read, whatever its name says.";
  return "The PDF could not be read. Try again in a moment, or download it.";
}

function PdfPage({ file, number }: { readonly file: PDFDocumentProxy; readonly number: number }): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isNear, setIsNear] = useState(number === 1);
  const [text, setText] = useState("");
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const observer = new IntersectionObserver((seen) => setIsNear(seen.at(-1)?.isIntersecting === true), {
      root: element.closest(".pdf"),
      rootMargin: `${MARGIN_PX}px`,
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = canvas.current;
    if (element === null || !isNear) return undefined;
    const gone = new AbortController();
    draw(file, number, element, gone.signal).then(
      (found) => !gone.signal.aborted && setText(found),
      () => undefined,
    );
    return () => {
      gone.abort();
      release(element);
    };
  }, [file, number, isNear]);
  return (
    <figure>
      <canvas ref={canvas} role="img" aria-label={`Page ${number}`} />
      <figcaption className="for-readers">{text}</figcaption>
    </figure>
  );
}

/** Gives up the dots of a page that is far away: those of hundreds of pages are gigabytes. Its place stays. */
function release(canvas: HTMLCanvasElement): void {
  if (canvas.hasAttribute("data-drawn")) canvas.style.aspectRatio = `${canvas.width} / ${canvas.height}`;
  canvas.width = 1;
  canvas.height = 1;
  canvas.removeAttribute("data-drawn");
}

/** Draws a page as wide as its place; resolves with its text, for those who hear it. */
async function draw(
  file: PDFDocumentProxy,
  number: number,
  canvas: HTMLCanvasElement,
  signal: AbortSignal,
): Promise<string> {
  const page = await file.getPage(number);
  if (signal.aborted) return "";
  const whole = page.getViewport({ scale: 1 });
  const density = Math.min(devicePixelRatio, DENSITY_MAX);
  const wanted = (canvas.clientWidth * density) / whole.width;
  const scale = Math.min(wanted, Math.sqrt(DOTS_MAX / (whole.width * whole.height)));
  const viewport = page.getViewport({ scale });
  canvas.width = Math.floor(viewport.width);
  canvas.height = Math.floor(viewport.height);
  const task = page.render({ canvas, viewport });
  signal.addEventListener("abort", () => task.cancel());
  await task.promise;
  canvas.setAttribute("data-drawn", "yes");
  const { items } = await page.getTextContent();
  return items.map((item) => ("str" in item ? item.str : "")).join(" ");
}
