// Where the page is: the view and its query, in the fragment.

import { signal } from "@preact/signals";

export interface Route { view: string; q: URLSearchParams }

function read(): Route {
	const [view, q] = location.hash.slice(1).split("?");
	return { view: view || "house", q: new URLSearchParams(q ?? "") };
}

export const route = signal(read());
addEventListener("hashchange", () => { route.value = read(); });

/** The fragment of a view: href("point", { s, p }). */
export function href(view: string, q: Record<string, string> = {}): string {
	const s = new URLSearchParams(q).toString();
	return "#" + view + (s ? "?" + s : "");
}

export function go(view: string, q: Record<string, string> = {}): void {
	location.hash = href(view, q);
}
