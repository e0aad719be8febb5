// A field of an item as it is shown: its label, its value, and what can be done with it.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { IconButton } from "../components/iconButton.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { copyText } from "./copy.js";
import { cut, partsOf } from "./shownText.js";

const MOST = 5000; // characters that are shown at once
const HIDE = 60_000; // milliseconds after which a secret that was revealed is hidden again
const MASK = "••••••••••";

/** A text with its hidden characters made visible. It cannot reorder what stands around it. */
export function ShownText({ text }: { text: string }) {
  const parts = partsOf(text);
  const [only] = parts;
  if (parts.length === 1 && only && !only.isHidden) return <bdi>{only.text}</bdi>;
  return (
    <bdi>
      {parts.map((part, at) =>
        part.isHidden ? (
          <span key={at} class="hiddenSign" title={moreTexts.items.hiddenSign}>
            {part.text}
          </span>
        ) : (
          part.text
        ),
      )}
    </bdi>
  );
}

/** A text that may be long: its beginning, and all of it if a person wants that. */
export function LongText({ text, most = MOST }: { text: string; most?: number }) {
  const [shown, setShown] = useState(most);
  if (text.length <= shown) return <ShownText text={text} />;
  return (
    <>
      <ShownText text={cut(text, shown)} />{" "}
      <Button kind="plain" onClick={() => setShown(Math.min(text.length, shown * 10))}>
        {moreTexts.items.showMore(text.length - shown)}
      </Button>
    </>
  );
}

/** Whether something is revealed: by intent, and for a minute at most, and not while nobody looks at the page. */
export function useReveal(): [boolean, (isShown: boolean) => void] {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!isShown) return undefined;
    const hide = (): void => setShown(false);
    const look = (): void => void (document.hidden && hide());
    const timer = setTimeout(hide, HIDE);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [isShown]);
  return [isShown, setShown];
}

interface FieldRowProps {
  label: string;
  value: string;
  isSecret?: boolean;
  isMono?: boolean;
  /** What is shown in the place of the value, such as a link. */
  children?: ComponentChildren;
}

/** A field: copied with one button; a secret is hidden until somebody reveals it. */
export function FieldRow({ label, value, isSecret = false, isMono = isSecret, children }: FieldRowProps) {
  const [isShown, setShown] = useReveal();
  const isVisible = !isSecret || isShown;
  const name = cut(label, 80);
  return (
    <div class="fieldRow">
      <dt>
        <ShownText text={cut(label, 300)} />
      </dt>
      <dd class={isMono ? "fieldValue mono" : "fieldValue"}>
        {isVisible ? (
          (children ?? <LongText text={value} />)
        ) : (
          <span class="mask" role="img" aria-label={moreTexts.items.isHidden}>
            {MASK}
          </span>
        )}
      </dd>
      <dd class="fieldActions">
        {isSecret && (
          <IconButton
            icon={isShown ? "eyeOff" : "eye"}
            label={isShown ? moreTexts.items.hide(name) : moreTexts.items.reveal(name)}
            isPressed={isShown}
            onClick={() => setShown(!isShown)}
          />
        )}
        <IconButton
          icon="copy"
          label={moreTexts.items.copy(name)}
          onClick={() => void copyText(value, name, isSecret)}
        />
      </dd>
    </div>
  );
}
