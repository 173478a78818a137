// Who is signed in here. The token lives as long as this tab; a link signs in once.

import { signal } from "@preact/signals";
import { Conn, ended, Fault } from "./rpc";
import { Site, sites } from "./site";

interface Session { token?: string; you: string; name?: string; sites: { name: string; url: string; owner?: boolean; you?: string }[] }

/** wait, in, or out: expired says that a link was used or too old, unclaimed that nobody owns the site. */
export const state = signal<"wait" | "in" | "out" | "expired" | "unreachable" | "unclaimed">("wait");
export const you = signal("");

let token = "";

/** Takes the one-use key out of the address, where it must not stay. */
function key(): string | undefined {
	const m = /^#k=([\w-]+)$/.exec(location.hash);
	if (m) history.replaceState(null, "", location.pathname);
	return m?.[1];
}

/** Signs in by the key of the address or the token of before a reload. */
export async function signIn(): Promise<void> {
	const k = key();
	ended.call = () => { state.value = "out"; forget(); };
	token = sessionStorage.getItem("token") ?? "";
	try {
		const r = k ? await fetch("/page/session", {
			method: "POST", credentials: "omit", cache: "no-store", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key: k }),
		}) : token ? await fetch("/page/session", { credentials: "omit", cache: "no-store", headers: { Authorization: "Bearer " + token } }) : undefined;
		if (!r || !r.ok) {
			if (!r || r.status === 401 || k) forget();
			state.value = await unclaimed() ? "unclaimed" : r && k ? "expired" : r && r.status !== 401 ? "unreachable" : "out";
			return;
		}
		const s = await r.json() as Session;
		if (s.token) sessionStorage.setItem("token", token = s.token);
		you.value = s.you;
		sites.value = s.sites.map(x => new Site(x.name, new Conn(x.url, () => token), x.owner === true, x.you ?? s.you));
		state.value = "in";
	} catch {
		state.value = "unreachable";
	}
}

/** Whether this is the page of a site on its network that nobody owns. */
async function unclaimed(): Promise<boolean> {
	if (location.protocol !== "https:") return false;
	const r = await fetch("/page/unclaimed", { credentials: "omit", cache: "no-store" });
	return r.ok && (await r.json()).unclaimed === true;
}

function forget(): void {
	token = "";
	sessionStorage.removeItem("token");
}

/** A window that is signed in: a browser, by what it calls itself. */
export interface Window { session: number; browser: string; age_seconds: number; idle_seconds: number; own?: boolean }

/** The windows of this page that are signed in. */
export async function windows(signal?: AbortSignal): Promise<Window[]> {
	const r = await fetch("/page/session", { credentials: "omit", cache: "no-store", headers: { Authorization: "Bearer " + token }, signal });
	return r.ok ? (await r.json()).sessions ?? [] : [];
}

/** Signs a window out. */
export async function signOut(n: number): Promise<void> {
	const r = await fetch("/page/session/" + n, { method: "DELETE", credentials: "omit", headers: { Authorization: "Bearer " + token } });
	if (!r.ok) throw new Fault("unavailable", "");
}
