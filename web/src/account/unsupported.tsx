// The page where the app cannot work: over plain HTTP on a network, or below a path of a host.
import { moreTexts } from "../texts/lazyTexts.js";
import { Frame } from "./frame.js";

/** Why nothing works here, and what to do. */
export function Unsupported({ isMisplaced }: { isMisplaced: boolean }) {
  const words = isMisplaced ? moreTexts.misplaced : moreTexts.unsupported;
  return (
    <Frame title={words.title} isWide>
      <p>{words.why}</p>
      <h2>{moreTexts.unsupported.what}</h2>
      <ul class="steps">
        {words.steps.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ul>
    </Frame>
  );
}
