// How numbers, lengths and times are written, whatever the page says of them.

const wanted = new URLSearchParams(location.search).get("lang") ?? navigator.language;
/** The language in use: en or de. */
export const lang = wanted.toLowerCase().startsWith("de") ? "de" : "en";
/** How dates and numbers are written: as the browser's person does, where the language is the page's. */
export const locale = navigator.languages.find(l => l.toLowerCase().split("-")[0] === lang) ?? lang;

/** Returns a function that gives the text of a key. {name} is replaced by args.name. A text "one|many" is chosen by
 *  args.n. */
export function texts<K extends string>(table: Record<K, string>) {
	return (key: K, args: Record<string, string | number> = {}): string =>
		form(table[key] ?? key, args.n).replace(/\{(\w+)\}/g, (_, k) => String(args[k] ?? ""));
}

/** The form of a text for a number. */
export function form(text: string, n: unknown): string {
	const [one, many] = text.split("|");
	return (n === 1 ? one : many ?? one)!;
}

/** A number as people write it here, with at most so many digits after the point. */
export function number(v: number, digits = 1, fixed = false): string {
	const key = digits + (fixed ? 100 : 0);
	return (formats[key] ??= new Intl.NumberFormat(locale, { maximumFractionDigits: digits, minimumFractionDigits: fixed ? digits : 0 })).format(v);
}

const formats: Record<number, Intl.NumberFormat> = {};

/** A length that counts down: 0:42, or 1:02:03. */
export function clock(seconds: number): string {
	const s = Math.ceil(seconds), two = (n: number) => String(n).padStart(2, "0");
	return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

/** A length in words: 0.4 s, 12 s, 4 min, 1 h 22 min, 3 d. */
export function length(seconds: number): string {
	const s = Math.round(seconds), unit = (a: number, x: string, b = 0, y = "s") => number(a, 0) + " " + x + (b ? " " + b + " " + y : "");
	if (seconds < .95) return number(seconds && Math.max(.1, seconds), 1) + " s";
	if (s < 60) return unit(s, "s");
	if (s < 3600) return unit(Math.floor(s / 60), "min", s % 60, "s");
	if (s < 86400) return unit(Math.floor(s / 3600), "h", Math.floor(s / 60) % 60, "min");
	return unit(Math.floor(s / 86400), "d", Math.floor(s / 3600) % 24, "h");
}

/** An age, less exactly: 12 s, 4 min, 3 h, 2 d. */
export function age(seconds: number): string {
	return length(seconds < 60 ? seconds : seconds < 3600 ? seconds - seconds % 60 : seconds < 86400 ? seconds - seconds % 3600 : seconds - seconds % 86400);
}

/** The time of day of a moment. */
export function timeOf(d: Date, withSeconds = false): string {
	return d.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...withSeconds ? { second: "2-digit" } : {} });
}
