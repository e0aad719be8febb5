// Files to and from the disk of the person.

/** Offer a file as a download. Its address is forgotten afterwards. */
export function saveFile(name: string, content: string | Blob, type = "application/octet-stream"): void {
  const address = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Let the person choose a file; undefined if none was chosen. */
export function chooseFile(accept: string): Promise<File | undefined> {
  return new Promise((chosen) => {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = accept;
    input.addEventListener("change", () => chosen(input.files?.[0]));
    input.addEventListener("cancel", () => chosen(undefined));
    input.click();
  });
}
