// A one-time code that ticks.
import { InvalidTotp, type OneTimeCode as Secret, secondsLeft, totpCode, totpUri } from "@strongroom/client/items";
import { useEffect, useState } from "preact/hooks";
import { IconButton } from "../components/iconButton.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { copyText } from "./copy.js";
import { FieldRow } from "./fieldRow.js";

/** The code of now, for how many more seconds, and whether none can be made. */
interface Shown {
  readonly code: string;
  readonly left: number;
  readonly isBad: boolean;
}

const grouped = (code: string): string =>
  code.length % 2 ? code : `${code.slice(0, code.length / 2)} ${code.slice(code.length / 2)}`;

/** The one-time code of an item, with the seconds that are left; below it, what makes it. */
export function OneTimeCode({ totp }: { totp: Secret }) {
  const [shown, setShown] = useState<Shown>({ code: "", left: 0, isBad: false });
  useEffect(() => {
    let isOver = false;
    const look = async (): Promise<void> => {
      const now = Date.now() / 1000;
      try {
        const [code, left] = [await totpCode(totp, now), secondsLeft(totp, now)];
        if (!isOver) setShown({ code, left, isBad: false });
      } catch (fault) {
        if (!(fault instanceof InvalidTotp)) throw fault;
        if (!isOver) setShown({ code: "", left: 0, isBad: true });
      }
    };
    void look();
    const timer = setInterval(() => void look(), 1000);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [totp]);
  const period = totp.period ?? 30;
  if (shown.isBad) return <FieldRow label={moreTexts.items.members.totp} value={totp.secret ?? ""} isSecret />;
  return (
    <>
      <div class="fieldRow">
        <dt>{moreTexts.items.members.code}</dt>
        <dd class="fieldValue code mono">
          <span class="digits">{grouped(shown.code)}</span>
          <Clock share={shown.left / period} isSoon={shown.left <= 5} />
          <span class="left" role="timer" aria-label={moreTexts.items.secondsLeft(shown.left)}>
            {shown.left} s
          </span>
        </dd>
        <dd class="fieldActions">
          <IconButton
            icon="copy"
            label={moreTexts.items.copy(moreTexts.items.members.code)}
            onClick={() => void copyText(shown.code, moreTexts.items.members.code, true)}
          />
        </dd>
      </div>
      <FieldRow label={moreTexts.items.members.totp} value={totpUri(totp)} isSecret />
    </>
  );
}

/** A circle that empties. */
function Clock({ share, isSoon }: { share: number; isSoon: boolean }) {
  const around = 2 * Math.PI * 6;
  return (
    <svg class={isSoon ? "clock soon" : "clock"} width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <circle class="clockBack" cx="8" cy="8" r="6" />
      <circle
        class="clockLeft"
        cx="8"
        cy="8"
        r="6"
        stroke-dasharray={`${around * share} ${around}`}
        transform="rotate(-90 8 8)"
      />
    </svg>
  );
}
