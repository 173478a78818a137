// The icons: paths in a square of 24.

const paths = {
	safe: "M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0", away: "!M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0", wait: "-M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0",
	rest: "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M10 8.5v7M14 8.5v7", no: "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M6 6l12 12",
	stop: "M8 3h8l5 5v8l-5 5H8l-5-5V8z", stopFull: "!M8 3h8l5 5v8l-5 5H8l-5-5V8z",
	unknown: "m12 2 10 10-10 10L2 12zM9.8 9.6a2.3 2.3 0 1 1 2.9 2.4c-.5.2-.7.6-.7 1.2M12 16.3v.1",
	old: "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M12 7v5l3.500 2", bad: "M12 3 2 20.500h20zM12 10v4.500M12 17.400v.1", ok: "m4.500 12.500 5 5 10-11",
	house: "m3 11 9-8 9 8M5.500 9.500V20.500h13V9.500", hand: "M4 13.500 8 20h8l4-6.500M12 3v10M8.500 9.500 12 13l3.500-3.500",
	talk: "M3 4.500h18v12H10l-5 4v-4H3z", rules: "M4 6h4l8 12h4M16 3.500 19.500 6 16 8.500M4 18h4l2-3", journal: "M5 3h14v18H5zM9 8h6M9 12h6M9 16h3",
	key: "M3.500 12a4.500 4.500 0 1 0 9 0a4.500 4.500 0 1 0-9 0M12.500 12H22M18 12v4",
	board: "M4 4h16v16H4zM8.500 8.500h7v7h-7zM9 1.500V4m6-2.500V4M9 20v2.500m6-2.500v2.500", more: "M5 12h.01M12 12h.01M19 12h.01", back: "m14.500 5-7 7 7 7",
	phone: "M7 2.500h10v19H7zM11 18.500h2", chip: "M5 5h14v14H5z", site: "M3 20.500V10l9-6.500L21 10v10.500zM3 10h18M12 3.500v17",
	seal: "M6 11h12v9.500H6zM8.500 11V7.500a3.500 3.500 0 0 1 7 0V11", plus: "M12 5v14M5 12h14", pause: "M9 5v14M15 5v14",
	ask: "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M9.500 9.600a2.600 2.600 0 1 1 3.300 2.500c-.5.200-.8.600-.8 1.300M12 16.700v.1",
	dot: "!M7 12a5 5 0 1 0 10 0a5 5 0 1 0-10 0", list: "M9 6h11M9 12h11M9 18h11M4.500 6h.01M4.500 12h.01M4.500 18h.01",
} as const;

export type IconName = keyof typeof paths;

/** An icon; it says nothing to a screen reader. "!" fills it, "-" dashes it. */
export function Icon({ n }: { n: IconName }) {
	const d: string = paths[n], c = d[0];
	return <svg class="i" viewBox="0 0 24 24" aria-hidden="true">
		<path d={c === "!" || c === "-" ? d.slice(1) : d} fill={c === "!" ? "currentColor" : undefined} stroke-dasharray={c === "-" ? "4 4.4" : undefined}
			stroke-width={n === "more" ? 3.5 : undefined} />
	</svg>;
}
