// The settings: a list of sections, and the one that is chosen.
import type { ComponentType } from "preact";
import { Columns } from "../components/columns.js";
import { Icon, type IconName } from "../components/icon.js";
import { hrefOf } from "../state/route.js";
import { texts } from "../texts/en.js";
import { Appearance } from "./appearance.js";

const SECTIONS: readonly (readonly [name: string, icon: IconName, label: string, view: ComponentType])[] = [
  ["appearance", "gear", texts.settings.appearance, Appearance],
];

/** `parts[0]` is the name of the section. */
export function SettingsView({ parts }: { parts: readonly string[] }) {
  const [, , label, Section] = SECTIONS.find(([name]) => name === parts[0]) ?? SECTIONS[0]!;
  return (
    <Columns
      isDetail={parts.length > 0}
      listLabel={texts.settings.title}
      list={
        <div class="settingsList">
          <h1>{texts.settings.title}</h1>
          <ul class="navList">
            {SECTIONS.map(([name, icon, shown]) => (
              <li key={name}>
                <a class="navLink" href={hrefOf("settings", name)} aria-current={shown === label ? "page" : undefined}>
                  <Icon name={icon} />
                  <span class="navText">{shown}</span>
                </a>
              </li>
            ))}
          </ul>
        </div>
      }
      detailLabel={label}
      detail={
        <div class="settingsDetail stack">
          <a class="backLink" href={hrefOf("settings")}><Icon name="back" />{texts.settings.title}</a>
          <h2>{label}</h2>
          <Section />
        </div>
      }
    />
  );
}
