// The settings: a list of sections, and the one that is chosen.
import type { ComponentType } from "preact";
import { useState } from "preact/hooks";
import { Columns } from "../components/columns.js";
import { Icon, type IconName } from "../components/icon.js";
import { hrefOf } from "../state/route.js";
import { useOpen } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { Activity } from "./activity.js";
import { Appearance } from "./appearance.js";
import { Devices } from "./devices.js";
import { LogOutDialog } from "./logOutDialog.js";
import { Move } from "./move.js";
import { PasskeysSection } from "./passkeys.js";
import { PasswordSection } from "./password.js";
import { Rotation } from "./rotation.js";
import { SecondFactorSection } from "./secondFactors.js";
import { Tokens } from "./tokens.js";
import { Transfer } from "./transfer.js";
import { UsageSection } from "./usage.js";

const { sections } = moreTexts.settings;
type SettingsSection = readonly [name: string, icon: IconName, label: string, view: ComponentType];
const SECTIONS: readonly [SettingsSection, ...SettingsSection[]] = [
  ["appearance", "gear", sections.appearance, Appearance],
  ["password", "lock", sections.password, PasswordSection],
  ["second-factor", "check", sections.secondFactor, SecondFactorSection],
  ["passkeys", "key", sections.passkeys, PasskeysSection],
  ["devices", "device", sections.devices, Devices],
  ["tokens", "user", sections.tokens, Tokens],
  ["activity", "history", sections.activity, Activity],
  ["usage", "vault", sections.usage, UsageSection],
  ["rotation", "sync", sections.rotation, Rotation],
  ["transfer", "download", sections.transfer, Transfer],
  ["move", "cloud", sections.move, Move],
];

/** `parts[0]` is the name of the section. */
export function SettingsView({ parts }: { parts: readonly string[] }) {
  const { email } = useOpen();
  const [isLeaving, setLeaving] = useState(false);
  const [chosen, , label, Section] = SECTIONS.find(([name]) => name === parts[0]) ?? SECTIONS[0];
  return (
    <>
      <Columns
        isDetail={parts.length > 0}
        listLabel={moreTexts.settings.title}
        list={
          <div class="settingsList">
            <div class="settingsHead">
              <h2 class="settingsTitle">{moreTexts.settings.title}</h2>
              <p class="muted small clip">
                <bdi>{email}</bdi>
              </p>
            </div>
            <ul class="navList">
              {SECTIONS.map(([name, icon, shown]) => (
                <li key={name}>
                  <a
                    class="navLink"
                    href={hrefOf("settings", name)}
                    aria-current={name === chosen ? "true" : undefined}
                  >
                    <Icon name={icon} />
                    <span class="navText">{shown}</span>
                  </a>
                </li>
              ))}
              <li>
                <button type="button" class="navLink" onClick={() => setLeaving(true)}>
                  <Icon name="back" />
                  <span class="navText">{texts.logOut.title}</span>
                </button>
              </li>
            </ul>
          </div>
        }
        detailLabel={label}
        detail={
          <div class="settingsDetail stack" key={chosen}>
            <a class="backLink" href={hrefOf("settings")}>
              <Icon name="back" />
              {moreTexts.settings.title}
            </a>
            <h2>{label}</h2>
            <Section />
          </div>
        }
      />
      {isLeaving && <LogOutDialog onClose={() => setLeaving(false)} />}
    </>
  );
}
