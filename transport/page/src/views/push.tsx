// The phones that a site tells what happens: those of an owner's list, and this one.

import { useEffect, useState } from "preact/hooks";
import { kept, signed, told as asked } from "../phone";
import { Fault } from "../rpc";
import { fetchOwn } from "../session";
import type { Site } from "../site";
import { Button, Loading, Note, says, Section, sentence } from "../ui";
import { s } from "../words-setup";
import { Acts, Owners, useAsk, useOwner } from "./parts";

interface Phone { did: string; name?: string; allowed: boolean; at?: string }

/** The phones that are told, and those that ask for it, for an owner. */
export function Told({ site }: { site: Site }) {
	const { value, again } = useOwner<{ phones: Phone[] }>(site, "owner/phones", {}, 10);
	return !value?.phones.length ? null : <Section title={s("push.told")} n={value.phones.length}><div class="stack3">
		<p class="small soft">{s("push.told.says")}</p>
		<ul class="list">{value.phones.map(p => {
			const about = "push " + p.did, button = (method: string, label: string) => <Owners site={site} about={about}
				method={method} params={{ name: p.did }} done={again}
				label={`${label}, ${p.name ?? p.did}`}>{label}</Owners>;
			return <li key={p.did} class="top wrap" data-told={p.did}><div class="grow"><h3><bdi>{p.name
				?? "…" + p.did.slice(-8)}</bdi></h3>
				<p class="small"><code class="did" title={p.did}>{p.did}</code></p><p class="small soft">
					{s(!p.allowed ? "push.asks" : p.at ? "push.by" : "push.silent", { host: p.at ?? "" })}</p></div>
				<div class="btns">{!p.allowed && button("owner/tell", s("push.allow"))}
					{button("owner/untell", s(p.allowed ? "push.remove" : "push.refuse"))}</div>
				<Acts site={site} about={about} /></li>;
		})}</ul></div></Section>;
}

interface State { server?: string; allowed?: boolean; subscribed?: boolean }

/** Asks the site how it is with this phone, or changes that. */
async function ask(method: string, signal?: AbortSignal): Promise<State> {
	return answered(fetchOwn("page/push", { method, signal }));
}

async function answered(answer: Promise<Response>): Promise<State> {
	const r = await answer.catch(() => { throw new Fault("offline", ""); });
	const m = await r.json().catch(() => undefined);
	if (!r.ok) throw new Fault(r.status === 503 ? "unavailable" : "denied", String(m?.error?.message ?? ""));
	return m;
}

const file = "/page/worker.js", scope = "/page/";
const typed = (globalThis as any).trustedTypes?.createPolicy("agentsite-worker", { createScriptURL: () => file });

const subscription = async () =>
	(await navigator.serviceWorker?.getRegistration(scope))?.pushManager?.getSubscription() ?? undefined;

const bytes = (of: string) => Uint8Array.from(atob(of.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));

/** Why this browser takes no messages; "" where it does. */
function missing(): "" | "push.home" | "push.none" | "push.denied" {
	if ("serviceWorker" in navigator && "PushManager" in window && "Notification" in window) {
		return Notification.permission === "denied" ? "push.denied" : "";
	}
	return /iP(hone|ad|od)/.test(navigator.userAgent) || "standalone" in navigator && navigator.maxTouchPoints > 1
		? "push.home" : "push.none"; // an iPad calls itself a Mac
}

/** Subscribes this browser, for the site with that key alone. */
async function subscribe(server: string): Promise<PushSubscription> {
	if (await Notification.requestPermission() !== "granted") throw new Fault("denied", s("push.denied"));
	const r = await navigator.serviceWorker.register(typed ? typed.createScriptURL("") : file, { scope })
		.catch(() => { throw new Fault("unavailable", s("push.untrusted")); });
	const worker = r.installing ?? r.waiting;
	if (worker) {
		await new Promise<void>((ok, no) => {
			const see = () => worker.state === "activated" ? ok() : worker.state === "redundant"
				&& no(new Fault("unavailable", s("push.none")));
			worker.addEventListener("statechange", see);
			see();
		});
	}
	await (await r.pushManager.getSubscription())?.unsubscribe(); // it may be of another key
	return r.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(server) })
		.catch(e => { throw new Fault("unavailable", s("push.service") + " " + String(e?.message ?? "")); });
}

/** Has this phone be told what happens, or not any more. */
export function TellMe() {
	const { value, fault, again } = useAsk(signal => ask("GET", signal), [], 5);
	const [here, setHere] = useState<boolean>(), [failed, setFailed] = useState<string>();
	const look = () => void subscription().then(x => setHere(!!x), () => setHere(false));
	useEffect(look, []);
	const change = (what: () => Promise<unknown>) => async () => {
		setFailed(undefined);
		try {
			await what();
		} catch (e) {
			setFailed(e instanceof Fault && e.message ? sentence(e.message) : says(e));
		}
		look();
		again();
	};
	const begin = async () => {
		const body = JSON.stringify(await subscribe(value!.server!)), key = await kept((await asked()).site, "key");
		if (!key) throw new Fault("denied", "");
		await answered(signed(key, "/page/push", "", body));
	};
	const end = async () => {
		await ask("DELETE");
		await (await subscription())?.unsubscribe();
	};
	const why = missing(), told = value?.subscribed && here;
	const state = why || (fault || !value?.server ? "off" : !told ? "no" : value.allowed ? "told" : "waits");
	return <Section title={s("push.title")}><div class="stack3" data-push={state}>
		{fault ? <p class="soft"><bdi>{fault.message ? sentence(fault.message) : says(fault)}</bdi></p>
			: value && !value.server ? <p class="soft">{s("push.nobody")}</p>
			: why ? <Note icon="old">{s(why)}</Note> : !value || here === undefined
				? <Loading name={s("push.title")} /> : <>
				<p>{s(!told ? "push.says" : value.allowed ? "push.yes" : "push.waits")}</p>
				{told && !value.allowed && <pre class="exact" tabIndex={0}>agentsite notify allow NAME</pre>}
				<div class="btns">{told ? <Button hook="push-off" act={change(end)}>{s("push.off")}</Button>
					: <Button class="pri" hook="push-on" act={change(begin)}>{s("push.on")}</Button>}</div></>}
		{failed && <Note tone="bad" icon="bad"><bdi>{failed}</bdi></Note>}
	</div></Section>;
}
