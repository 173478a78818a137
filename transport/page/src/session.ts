// Who is signed in here. The token lives as long as this tab; a link signs in once, and on a site's network a key.

import { signal } from "@preact/signals";
import { isWaiting, keep, kept, make, short, signed, told } from "./phone";
import { behind, Conn, credentials, ended, Fault } from "./rpc";
import { isName, Site, sites } from "./site";

interface Session { token?: string; you: string; name?: string; home?: string; answers?: boolean;
	sites: { name: string; url: string; key?: string; owner?: boolean; you?: string }[] }

type State = "wait" | "in" | "out" | "expired" | "unreachable" | "compare" | "old" | "unclaimed";

/** wait, in, or out: expired says that a link was used or too old, compare that an owner compares the key of this
 *  browser, old that it can have none, unclaimed that nobody owns the site. */
export const state = signal<State>("wait");
export const you = signal("");
/** What an owner compares. */
export const print = signal("");
/** Whether this is the page of a site on its network, where keys of browsers sign in. */
export const near = location.protocol === "https:" && !behind;
/** The program that serves the page of many sites: it keeps passkeys, and finds and claims sites. */
export const home = signal<Conn | undefined>(undefined);

/** Whether the key of this browser answers calls that wait for an owner. */
export const answers = signal(false);

let token = "", did = "";

/** The token of this session. */
export const bearer = () => token;

/** The option by which a command means the site of this page: its name as of when this browser was signed in, or its
 *  key. A site tells its name to nobody else. */
export function option(): string {
	const name = localStorage.getItem("site") ?? "";
	return isName(name) ? `--site ${name}` : `--peer ${did}`;
}

/** The key of the site, and whether nobody owns it. */
async function asked(): Promise<{ site: string; unclaimed: boolean }> {
	const all = await told();
	did = all.site;
	return all;
}

/** Takes the one-use key out of the address, where it must not stay. */
function key(): string | undefined {
	const m = /^#k=([\w-]+)$/.exec(location.hash);
	if (m) history.replaceState(null, "", location.pathname);
	return m?.[1];
}

/** Signs in by the key of the address, the token of before a reload, or the key of this browser. */
export async function signIn(): Promise<void> {
	const k = key();
	ended.call = () => { renewing ??= renew().finally(() => { renewing = undefined; }); };
	token = behind ? "" : sessionStorage.getItem("token") ?? "";
	const own = (more: RequestInit) => fetch("page/session", { credentials, cache: "no-store", ...more });
	try {
		let r = k && near ? await byCode(k)
			: k ? await own({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key: k }) })
			: token ? await own({ headers: { Authorization: "Bearer " + token } }) : behind ? await own({}) : undefined;
		if (near && !k && (!r || r.status === 401)) r = await byKey();
		if (r?.ok) {
			const s = await r.json() as Session;
			take(s.token);
			you.value = s.you;
			answers.value = s.answers === true;
			home.value = s.home ? new Conn(s.home, () => token) : undefined;
			sites.value = s.sites.map(x => new Site(x.name, new Conn(x.url, () => token), x.owner === true, x.you ?? s.you,
				x.key));
			if (near) localStorage.setItem("site", s.sites[0]?.name ?? "");
			state.value = "in";
			return;
		}
		if (!r || r.status === 401 || k) forget();
		if (state.value === "wait" || state.value === "compare") { // nothing else is said yet
			state.value = !r || r.status === 403 || r.status === 401 && !k ? "out" : k ? "expired" : "unreachable";
		}
	} catch {
		state.value = "unreachable";
	}
}

function take(t?: string): void {
	if (t) sessionStorage.setItem("token", token = t);
}

let renewing: Promise<void> | undefined;

/** Begins another session where one is over and the key of this browser still counts; otherwise signs out. */
async function renew(): Promise<void> {
	const r = near && state.value === "in" ? await byKey().catch(() => null) : undefined;
	if (r?.ok) return take((await r.json() as Session).token);
	if (r === null || r && r.status >= 429) return; // the site is away: it is asked again when it says so again
	state.value = "out";
	forget();
}

/** Begins a session by the key of this browser; without one there is no answer. */
async function byKey(): Promise<Response | undefined> {
	const { site, unclaimed } = await asked();
	if (unclaimed) {
		state.value = "unclaimed";
		return;
	}
	const next = await kept(site, "next"), r = next && await signed(next, "/page/key");
	if (r?.ok) await keep(next!, "key").catch(() => {}); // the page was closed before
	const own = r?.ok ? undefined : await kept(site, "key");
	return own ? signed(own, "/page/key") : r;
}

/** Shows a new key to the owner who made a code, and signs in by it once it is granted something. The one before
 *  counts until then: a link to a page must not sign it out. */
async function byCode(code: string): Promise<Response | undefined> {
	const own = await make((await asked()).site);
	if (!own) {
		state.value = "old";
		return;
	}
	let r: Response | undefined = await signed(own, "/page/phone", code);
	if (!r.ok) return r;
	await keep(own, "next").catch(() => {}); // a phone may end the page while the owner compares
	print.value = await short(own);
	state.value = "compare";
	const end = performance.now() + 180_000; // longer than an owner is asked
	do { // the phone may sleep meanwhile, and the site start again
		const [waits] = await Promise.all([isWaiting(own), new Promise(go => setTimeout(go, 1000))]);
		r = waits ? undefined : await signed(own, "/page/key").catch(() => undefined);
	} while ((!r || r.status === 403) && performance.now() < end);
	if (r?.ok) await keep(own, "key").catch(() => {});
	return r;
}

function forget(): void {
	token = "";
	sessionStorage.removeItem("token");
}

/** Sends a request of this session, with JSON in its body. */
export const fetchOwn = (path: string, more: RequestInit = {}) => fetch(path, { credentials, cache: "no-store",
	headers: { Authorization: "Bearer " + token, ...more.body ? { "Content-Type": "application/json" } : {} }, ...more });

/** A window that is signed in: a browser, by what it calls itself. */
export interface Window { session: number; browser: string; age_seconds: number; idle_seconds: number; own?: boolean }

/** The windows of this page that are signed in. */
export async function windows(signal?: AbortSignal): Promise<Window[]> {
	const r = await fetchOwn("page/session", { signal });
	return r.ok ? (await r.json()).sessions ?? [] : [];
}

/** Signs a window out. This one is out at once; the key of this browser signs in again when the page is loaded. */
export async function signOut(w: Window): Promise<void> {
	const r = await fetchOwn("page/session/" + w.session, { method: "DELETE" });
	if (!r.ok) throw new Fault("unavailable", "");
	if (!w.own) return;
	state.value = "out";
	forget();
}
