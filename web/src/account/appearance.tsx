// How the app looks on this device, and when it locks.
import { Select } from "../components/select.js";
import { putOff } from "../state/device.js";
import { changeSettings, LOCK_CHOICES, settings, type Settings } from "../state/settings.js";
import { useStore } from "../state/store.js";
import { moreTexts } from "../texts/lazyTexts.js";

/** The section. */
export function Appearance() {
  const { theme, density, lockMinutes } = useStore(settings);
  const { themes, densities } = moreTexts.appearance;
  return (
    <div class="stack narrow">
      <Select<Settings["theme"]>
        label={moreTexts.appearance.theme}
        value={theme}
        onChange={(next) => changeSettings({ theme: next })}
        choices={[
          ["system", themes.system],
          ["light", themes.light],
          ["dark", themes.dark],
        ]}
      />
      <Select<Settings["density"]>
        label={moreTexts.appearance.density}
        value={density}
        onChange={(next) => changeSettings({ density: next })}
        choices={[
          ["dense", densities.dense],
          ["roomy", densities.roomy],
        ]}
      />
      <Select
        label={moreTexts.appearance.lock}
        hint={moreTexts.appearance.lockHint}
        value={`${lockMinutes}`}
        choices={LOCK_CHOICES.map((minutes) => [`${minutes}`, moreTexts.appearance.lockAfter(minutes)] as const)}
        onChange={(next) => {
          putOff(Number(next)); // first: other tabs read the time before the choice
          changeSettings({ lockMinutes: Number(next) });
        }}
      />
    </div>
  );
}
