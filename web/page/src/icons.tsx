// Icons of this page, drawn on a grid of 20 with a stroke of 1.6.

const PATHS = {
  upload: "M10 13V3.5M6 7l4-4 4 4M3.5 12.5v3a1.5 1.5 0 0 0 1.5 1.5h10a1.5 1.5 0 0 0 1.5-1.5v-3",
  download: "M10 3.5V13M6 9.5l4 4 4-4M3.5 13v2.5A1.5 1.5 0 0 0 5 17h10a1.5 1.5 0 0 0 1.5-1.5V13",
  copy: "M7.5 7.5h8a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-8a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1zM13 7V4.5a1 1 0 0 0-1-1H4.5a1 1 0 0 0-1 1V12a1 1 0 0 0 1 1h1.6",
  check: "M4 10.5l4 4 8-9",
  close: "M5 5l10 10M15 5L5 15",
  stop: "M5.5 5.5h9v9h-9z",
  search: "M8.7 3.5a5.2 5.2 0 1 1 0 10.4 5.2 5.2 0 0 1 0-10.4zM12.6 12.6l4 4",
  plus: "M10 4v12M4 10h12",
  minus: "M4 10h12",
  fit: "M3.5 7.5v-4h4M16.5 7.5v-4h-4M3.5 12.5v4h4M16.5 12.5v4h-4",
  theme: "M10 3.2a6.8 6.8 0 1 0 0 13.6 6.8 6.8 0 0 0 0-13.6zM10 3.2v13.6a6.8 6.8 0 0 0 0-13.6z",
  warning: "M10 3.2l7.3 13H2.7zM10 8v3.8M10 14.2v.1",
  file: "M5.5 2.8h5.8l3.7 3.7v9.7a1 1 0 0 1-1 1H5.5a1 1 0 0 1-1-1V3.8a1 1 0 0 1 1-1zM11 3v4h4",
  fold: "M3.5 5.5h13M3.5 10h4M12.5 10h4M3.5 14.5h7",
  bulb: "M7.8 14.4h4.4M8.3 17h3.4M7.8 14.2c0-1.6-2.5-2.7-2.5-5.9a4.7 4.7 0 0 1 9.4 0c0 3.2-2.5 4.3-2.5 5.9",
  sliders: "M3.5 6h6M13.5 6h3M3.5 14h3M10.5 14h6M11.5 4v4M8.5 12v4",
  arrow: "M4 10h12M11 5l5 5-5 5",
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon-svg" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
);
