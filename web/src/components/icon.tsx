// Icons, drawn by hand on a grid of 16. They say nothing by themselves: whoever uses one names what it means.
const PATHS = {
  add: "M8 3v10M3 8h10",
  back: "M10 3 5 8l5 5",
  card: "M1.5 3.5h13v9h-13zM1.5 6.5h13M4 10h3",
  check: "m3 8.5 3.5 3.5L13 4.5",
  close: "m4 4 8 8M12 4l-8 8",
  cloud: "M4.5 12.5h7a2.5 2.5 0 0 0 .4-5 4 4 0 0 0-7.7-.6A2.8 2.8 0 0 0 4.5 12.5Z",
  cloudOff: "M4.5 12.5h7a2.5 2.5 0 0 0 .4-5 4 4 0 0 0-7.7-.6A2.8 2.8 0 0 0 4.5 12.5ZM2 2l12 12",
  conflict: "M8 2v5M8 7 4 11v3M8 7l4 4v3",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  device: "M3 3h10v7.5H3zM1.5 13h13",
  down: "m4 6 4 4 4-4",
  download: "M8 2v8M4.5 7 8 10.5 11.5 7M3 13.5h10",
  edit: "m3 13 .7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7 11.3 7",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z",
  eyeOff: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM2.5 13.5l11-11",
  file: "M4 1.5h5.5L12 4v10.5H4zM9.5 1.5V4H12",
  folder: "M1.5 3.5h4.5l1.5 2h7v7.5h-13z",
  forward: "m6 4 4 4-4 4",
  gear: "M8 5.7a2.3 2.3 0 1 0 0 4.6 2.3 2.3 0 0 0 0-4.6ZM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4",
  history: "M2.5 8a5.5 5.5 0 1 0 1.7-4M2.5 2v3h3M8 5v3.2l2.2 1.3",
  identity: "M1.5 3h13v10h-13zM5.5 6a1.3 1.3 0 1 0 0 2.6A1.3 1.3 0 0 0 5.5 6ZM3.5 11a2 2 0 0 1 4 0M9.5 6.5h3M9.5 9h3",
  key: "M5 8.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM7 9.2 13 3M11 5l1.8 1.8M9.4 6.6l1.2 1.2",
  list: "M5 4h9M5 8h9M5 12h9M2 4h.5M2 8h.5M2 12h.5",
  lock: "M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  more: "M3 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M7.5 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M12 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0",
  print: "M4.5 6V2h7v4M4.5 11.5h-2V6h11v5.5h-2M4.5 9.5h7V14h-7z",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.3 10.3 14 14",
  star: "m8 2 1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z",
  sync: "M13 5A5.5 5.5 0 0 0 3 6M3 11a5.5 5.5 0 0 0 10-1M13 2v3h-3M3 14v-3h3",
  terminal: "M1.5 3h13v10h-13zM4 6l2.2 2L4 10M8 10.5h4",
  trash: "M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4M6.7 6.5v4.5M9.3 6.5v4.5",
  undo: "M5.5 3 2.5 6l3 3M2.5 6H9a4 4 0 0 1 0 8H6",
  up: "m4 10 4-4 4 4",
  user: "M8 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM2.5 14a5.5 5.5 0 0 1 11 0",
  vault: "M2 2.5h12v10H2zM4 12.5V14M12 12.5V14M8 5.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z",
  waiting: "M4 2h8M4 14h8M5 2v2.5L8 8l3-3.5V2M5 14v-2.5L8 8l3 3.5V14",
  warning: "M8 2 1.5 13.5h13zM8 6.5V10M8 11.9v.1",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof PATHS;

/** A small drawing in the colour of the text around it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.4"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
