// The key that this browser has for a site on its network. It cannot be copied out of the browser.

interface Kept { pair: CryptoKeyPair; site: string }

function request<T>(r: IDBRequest<T>): Promise<T> {
	return new Promise((ok, no) => { r.onsuccess = () => ok(r.result); r.onerror = () => no(r.error); });
}

async function store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
	const open = indexedDB.open("agentsite", 1);
	open.onupgradeneeded = () => open.result.createObjectStore("keys");
	return (await request(open)).transaction("keys", mode).objectStore("keys");
}

const base64 = (b: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(b)));
const raw = (k: Kept) => crypto.subtle.exportKey("raw", k.pair.publicKey);

interface Told { site: string; challenge: string; unclaimed: boolean }

/** What a site tells everybody: its key, a new challenge, and whether nobody owns it. */
export async function told(): Promise<Told> {
	const r = await fetch("/page/challenge", { credentials: "omit", cache: "no-store" });
	if (!r.ok) throw new Error("HTTP " + r.status);
	return r.json();
}

/** The key that counts, and one that an owner compares: it counts once it is granted something. */
export type Place = "key" | "next";

/** The key that was kept for a site; none where the browser forgot it, or keeps nothing. */
export async function kept(site: string, at: Place): Promise<Kept | undefined> {
	const k = await store("readonly").then(s => request<Kept | undefined>(s.get(at))).catch(() => undefined);
	return k?.site === site ? k : undefined;
}

/** Keeps a key in place of the one before. One that counts is not compared any more. */
export async function keep(k: Kept, at: Place): Promise<void> {
	const s = await store("readwrite");
	if (at === "key") s.delete("next");
	await request(s.put(k, at));
}

/** Makes a key for a site; none where the browser is too old. It is not kept yet. */
export async function make(site: string): Promise<Kept | undefined> {
	try {
		return { pair: await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]) as CryptoKeyPair, site };
	} catch {
		return undefined;
	}
}

/** The first eight letters and digits of a key, as the terminal shows them. */
export async function short(k: Kept): Promise<string> {
	const bits = [...new Uint8Array(await raw(k)).slice(0, 5)].map(b => b.toString(2).padStart(8, "0")).join("");
	return bits.replace(/.{5}/g, x => "abcdefghijklmnopqrstuvwxyz234567"[parseInt(x, 2)]!);
}

/** Sends a request that the key signed, with a code or with JSON. */
export async function signed(k: Kept, path: string, code = "", body?: string): Promise<Response> {
	const { challenge } = await told();
	if (body) {
		code = base64(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)))
			.replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
	}
	const text = ["agentsite page 1", path, k.site, location.host, challenge, code, ""].join("\n");
	const signature = await crypto.subtle.sign("Ed25519", k.pair.privateKey, new TextEncoder().encode(text));
	return fetch(path, {
		method: "POST", credentials: "omit", cache: "no-store", body, headers: {
			...body ? { "Content-Type": "application/json" } : {}, "Agentsite-Key": base64(await raw(k)), "Agentsite-Challenge": challenge,
			"Agentsite-Signature": base64(signature), ...code ? { "Agentsite-Code": code } : {},
		},
	});
}

/** Waits a while for what an owner grants to a key that showed a code. It is false once that may have come. */
export async function isWaiting(k: Kept): Promise<boolean> {
	const said = await fetch("/page/phone/waits", {
		credentials: "omit", cache: "no-store", headers: { "Agentsite-Key": base64(await raw(k)) },
		signal: AbortSignal.timeout(60_000),
	}).then(r => r.json()).catch(() => undefined);
	return said?.waits === true;
}
