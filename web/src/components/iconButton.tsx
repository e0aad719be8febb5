// A button with an icon alone; its label is read out, and shown when it is pointed at.
import { Icon, type IconName } from "./icon.js";

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick: (event: MouseEvent) => void;
  isPressed?: boolean | undefined;
  isDisabled?: boolean;
  /** For buttons that open a menu. */
  isExpanded?: boolean | undefined;
}

/** A square button of at least 28 pixels. */
export function IconButton({ icon, label, onClick, isPressed, isDisabled, isExpanded }: IconButtonProps) {
  return (
    <button
      type="button"
      class="iconButton"
      aria-label={label}
      title={label}
      disabled={isDisabled}
      aria-pressed={isPressed}
      aria-haspopup={isExpanded === undefined ? undefined : "menu"}
      aria-expanded={isExpanded}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}
