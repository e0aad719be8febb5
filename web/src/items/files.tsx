// Files of an item: added while they fit, shown if they are pictures, downloaded.
import { fileData, type FileContent } from "@strongroom/client/items";
import { useEffect, useRef, useState } from "preact/hooks";
import { saveFile } from "../account/files.js";
import { Button } from "../components/button.js";
import { IconButton } from "../components/iconButton.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { ShownText } from "./fieldRow.js";
import { cut, oneLine, sizeText } from "./shownText.js";

/** An item is at most so many bytes of JSON. */
export const MOST_BYTES = 4_000_000;
const PICTURES: readonly (readonly [type: string, begins: readonly number[], at?: number])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x57, 0x45, 0x42, 0x50], 8],
];

/** The type of a picture that may be shown, by how its content begins; what its name says does not count. */
export function pictureType(data: Uint8Array): string | undefined {
  return PICTURES.find(([, begins, at = 0]) => begins.every((byte, place) => data[at + place] === byte))?.[0];
}

/** How many bytes a content in base64 has. */
const lengthOf = ({ content = "" }: FileContent): number =>
  (content.length / 4) * 3 - (content.endsWith("==") ? 2 : content.endsWith("=") ? 1 : 0);

/** Offer a file as a download. It is never opened in the page. */
function download(file: FileContent, name: string): void {
  const safe =
    oneLine(name, 120)
      .replace(/[\\/:*?"<>|]/g, "_")
      .replace(/^\.+/, "") || "file";
  saveFile(safe, new Blob([fileData(file)], { type: "application/octet-stream" }));
}

const keys = new WeakMap<FileContent, number>();
let lastKey = 0;

/** The key of a file: no other file takes its place in the page. */
function keyOf(file: FileContent): number {
  const key = keys.get(file) ?? ++lastKey;
  keys.set(file, key);
  return key;
}

/** The files of an item. */
export function Files({
  files,
  onRemove,
}: {
  files: readonly FileContent[];
  onRemove?: ((file: FileContent) => void) | undefined;
}) {
  return (
    <ul class="files">
      {files.map((file) => (
        <FileLine key={keyOf(file)} file={file} onRemove={onRemove && (() => onRemove(file))} />
      ))}
    </ul>
  );
}

function FileLine({ file, onRemove }: { file: FileContent; onRemove: (() => void) | undefined }) {
  const [address, setAddress] = useState<string>();
  const name = file.name || moreTexts.items.unnamedFile;
  const show = (): void => {
    if (address) return setAddress(undefined);
    const data = fileData(file);
    setAddress(URL.createObjectURL(new Blob([data], { type: pictureType(data) ?? "" })));
  };
  useEffect(() => () => void (address && URL.revokeObjectURL(address)), [address]);
  const isPicture = pictureType(headOf(file)) !== undefined;
  const called = oneLine(name, 80);
  return (
    <li>
      <div class="fileLine">
        <span class="fileName">
          <ShownText text={cut(name, 200)} />
        </span>
        <span class="quiet">{sizeText(lengthOf(file))}</span>
        {isPicture && (
          <IconButton
            icon={address ? "eyeOff" : "eye"}
            label={address ? moreTexts.items.hide(called) : moreTexts.items.reveal(called)}
            onClick={show}
            isPressed={address !== undefined}
          />
        )}
        <IconButton icon="download" label={moreTexts.items.download(called)} onClick={() => download(file, name)} />
        {onRemove && <IconButton icon="trash" label={moreTexts.items.remove(called)} onClick={onRemove} />}
      </div>
      {address && <img class="picture" src={address} alt={called} />}
    </li>
  );
}

/** The first bytes of a file. */
const headOf = ({ content = "" }: FileContent): Uint8Array => fileData({ content: content.slice(0, 16) });

/** A file as it is stored. */
async function contentOf(file: File): Promise<FileContent> {
  const data = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return { name: file.name, content: btoa(text) };
}

interface AddFilesProps {
  /** How many bytes the item has without them. */
  bytes: number;
  onAdd: (files: FileContent[]) => void;
  onRefuse: (sentence: string) => void;
}

/** A button that adds files from this device, as long as the item stays small enough. */
export function AddFiles({ bytes, onAdd, onRefuse }: AddFilesProps) {
  const input = useRef<HTMLInputElement>(null);
  const add = async (chosen: readonly File[]): Promise<void> => {
    const size = chosen.reduce((sum, file) => sum + Math.ceil(file.size / 3) * 4 + file.name.length + 40, bytes);
    if (size > MOST_BYTES) return onRefuse(moreTexts.items.filesTooLarge(sizeText(size), sizeText(MOST_BYTES)));
    onAdd(await Promise.all(chosen.map(contentOf)));
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={moreTexts.items.addFile}
        onChange={(event) => {
          const chosen = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          if (chosen.length) void add(chosen);
        }}
      />
      <Button icon="add" onClick={() => input.current?.click()}>
        {moreTexts.items.addFile}
      </Button>
    </>
  );
}
