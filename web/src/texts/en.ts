// Every text that people read, in one place: a translation is another file like this one.
export const texts = {
  /** What the page shows before any script runs. */
  page: {
    title: "strongroom",
    description: "Your passwords, notes and documents, encrypted on this device.",
    noScript: "strongroom decrypts in this browser, by JavaScript, which is switched off here. The command line works without it.",
  },
};
