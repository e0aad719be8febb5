// The part of the navigation that leads to items: all of them, and each vault.
import { Icon } from "../components/icon.js";
import { hrefOf } from "../state/route.js";
import { vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";

/** Links to all items, and to those of each vault. */
export function ItemNavigation({ view, parts }: { view: string; parts: readonly string[] }) {
  const found = useStore(vaults);
  const isItems = view === "items";
  return (
    <div class="navList">
      <a class="navLink" href={hrefOf("items")} aria-current={isItems && !parts.length ? "page" : undefined}>
        <Icon name="list" />
        <span class="navText">{texts.shell.items}</span>
      </a>
      <h2 class="navHead">{texts.shell.vaults}</h2>
      <ul class="navList">
        {found.map((vault) => (
          <li key={vault.uid}>
            <a class="navLink" href={hrefOf("items", vault.uid)} aria-current={isItems && parts[0] === vault.uid ? "page" : undefined}>
              <Icon name="vault" />
              <span class="navText">{vault.name}</span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
