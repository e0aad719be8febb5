// A vault of the server. It is found by its name, which may have gone to another vault.
import { type Client, Refusal, type Vault } from "@strongroom/client";
import { moreTexts } from "../texts/lazyTexts.js";

/** The vault of this uid and name; refused where another vault has the name by now. */
export async function vaultByUid(
  client: Client,
  { uid, name }: { readonly uid: string; readonly name: string },
): Promise<Vault> {
  const found = await client.vault(name);
  if (found.uid !== uid) throw new Refusal(moreTexts.items.otherVault);
  return found;
}
