// A QR code as a drawing: always dark on light, so that every app can read it.
import { qrCode } from "./qr.js";

const QUIET = 4; // modules of light around it
const PIXELS = 4; // for one module

/** The code of a text; nothing if the text is too long for one. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const modules = qrCode(text);
  if (!modules) return null;
  const size = modules.length + 2 * QUIET;
  const path = modules
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : "")))
    .join("");
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      width={size * PIXELS}
      height={size * PIXELS}
      viewBox={`0 0 ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
