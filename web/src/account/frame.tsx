// The frame of the pages before the account is open: one calm card in the middle.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { focusUnlessTyping } from "../components/focus.js";
import { Icon } from "../components/icon.js";
import { texts } from "../texts/en.js";

interface FrameProps {
  title: string;
  children: ComponentChildren;
  /** What stands below the card. */
  below?: ComponentChildren;
  isWide?: boolean;
}

/** A card with a title. The first field that asks for it has the focus. */
export function Frame({ title, children, below, isWide }: FrameProps) {
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => focusUnlessTyping(card.current?.querySelector<HTMLElement>("[data-autofocus]")), [title]);
  return (
    <main class="gate">
      <div class="brand">
        <Icon name="vault" size={20} />
        <span>{texts.common.name}</span>
      </div>
      <div class={isWide ? "card wide" : "card"} ref={card}>
        <h1>{title}</h1>
        {children}
      </div>
      {below !== undefined && <div class="below">{below}</div>}
    </main>
  );
}

/** A form of such a page: Enter sends it. */
export function Form({ children, onSubmit }: { children: ComponentChildren; onSubmit: () => void }) {
  return (
    <form
      class="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** Why something did not work: read out when it appears. */
export function Fault({ children }: { children: string | undefined }) {
  return (
    <div role="alert">
      {children !== undefined && (
        <p class="faultBox">
          <Icon name="warning" />
          <span>{children}</span>
        </p>
      )}
    </div>
  );
}
