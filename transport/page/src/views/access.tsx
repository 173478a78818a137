// Access: who may do what on a site, until when, and how to end it.

import { useState } from "preact/hooks";
import { create } from "../passkey";
import type { Conn } from "../rpc";
import { home, near, signOut, windows, you } from "../session";
import { isName, type Site } from "../site";
import { Button, Icon, Loading, Note, Section } from "../ui";
import type { Query, View } from "../views";
import { age, locale, t } from "../words";
import { act, acts, Acts, Failed, ForOwner, Owners, siteIn, useAsk, useOwner, Which } from "./parts";
import { Loaded } from "./setup";

export interface Granted { id: string; token?: string; client?: string; returns_to?: string; to?: string; name?: string;
	who?: string; called_seconds_ago?: number; may: string[]; until?: string }
interface Access {
	site: string; name: string; addresses: string[]; url: string; time: string; time_is_known: boolean;
		last_known?: boolean;
	owners: { did: string; name?: string }[]; grants: Granted[];
}

/** When a permission ends, by the site's time. */
export function Until({ at, now }: { at?: string; now: string }) {
	if (!at) return <>{t("access.noEnd")}</>;
	const days = (Date.parse(at) - Date.parse(now)) / 864e5;
	const date = new Date(at).toLocaleString(locale, days < 2
		? { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { day: "numeric", month: "short",
			year: "numeric" });
	const left = days <= 0 ? t("access.ended") : days < 2 ? t("access.hours", { n: Math.max(1, Math.round(days * 24)) })
		: t("access.days", { n: Math.floor(days) });
	return <>{t("access.until")} <span class="nw">{date}</span>, {days < 7 ? <b>{left}</b> : left}</>;
}

const Key = ({ did }: { did: string }) => <code class="did" title={did}>{did}</code>;

function Row({ site, of, now, done }: { site: Site; of: Granted; now: string; done: () => void }) {
	const [sure, setSure] = useState(false), called = of.token ?? of.name, name = called ?? of.to ?? of.id;
	const busy = acts.value.some(a => a.about === of.id && a.site === site.name && !a.fault);
	return <li class="top wrap" data-grant={of.id}><span class="soft"><Icon n={of.token ? "chip" : "phone"} /></span>
		<div class="grow"><h3>{called ? <bdi>{called}</bdi> : <Key did={of.to ?? ""} />}</h3>
		{of.name && <p class="small"><Key did={of.to ?? ""} /></p>}
		{of.may.map((m, n) => <p key={n} class="mono small"><bdi>{m}</bdi></p>)}
		{of.may.length > 1 && <p class="small soft">{t("access.all")}</p>}
		<p class="small soft"><Until at={of.until} now={now} /> · <span class="mono">{of.id}</span></p></div>
		{!sure && <button type="button" class="btn" onClick={() => setSure(true)}
			aria-label={`${t("access.revoke")} ${name}`}>{t("access.revoke")}</button>}
		{sure && <div class="whole">{!busy && <Note icon="key">{t("access.sure")}<div class="btns">
			<button type="button" class="btn" onClick={() => setSure(false)}>{t("access.keep")}</button>
			<Owners site={site} about={of.id} method="owner/revoke" params={{ name: of.id }}
				done={() => { setSure(false); done(); }} label={`${t("access.revoke")} ${name}`}>
				{t("access.revoke")}</Owners>
		</div></Note>}<Acts site={site} about={of.id} /></div>}</li>;
}

/** The browser and the system in what a browser calls itself; all of that where neither is known. */
function browser(of: string): string {
	const first = (...some: string[]) => some.find(x => of.includes(x));
	return [first("Edg", "OPR", "Firefox", "Chrome", "Safari"), first("Android", "iPhone", "iPad", "Windows", "Mac OS",
		"Linux")].filter(x => x).join(", ") || of;
}

/** The windows of this page that are signed in, wherever they are. */
function Windows() {
	const { value, again } = useAsk(windows, [], 15);
	return !value?.length ? null : <Section title={t("access.windows")} n={value.length}><ul class="list">
		{value.map(w => <li key={w.session} class="top">
		<div class="grow"><h3>{t(w.own ? "access.own" : "access.window")}</h3><p class="small"><bdi
			title={w.browser}>{browser(w.browser)}</bdi></p>
			<p class="small soft">{t("access.idle", { time: age(w.idle_seconds), age: age(w.age_seconds) })}</p></div>
		<Button hook="sign-out" act={async () => { await signOut(w); again(); }}>
			{t("access.out")}</Button></li>)}</ul></Section>;
}

interface Passkey { id: string; name: string; added: string }

/** The passkeys that confirm an owner's acts; a new one needs the terminal. */
function Passkeys({ conn }: { conn: Conn }) {
	const { value, again } = useAsk(signal => conn.call<{ passkeys: Passkey[] }>("passkey/list", {}, { signal }), []);
	const page = { name: "", conn }, name = browser(navigator.userAgent);
	const add = async () => {
		const made = await create(conn);
		if (await act(page, "passkey", "passkey/add", { name, ...made }, t("passkey.add"), { name })) again();
	};
	return <Section title={t("passkey.title")} n={value?.passkeys.length}><div class="stack3">
		<p class="small soft">{t("passkey.says")}</p>
		{!!value?.passkeys.length && <ul class="list">{value.passkeys.map(p => <li key={p.id} class="top wrap">
			<span class="soft"><Icon n="key" /></span><div class="grow"><h3><bdi>{p.name}</bdi></h3>
			<p class="small soft">{new Date(p.added).toLocaleString(locale)}</p></div>
			<Owners site={page} about={p.id} method="passkey/remove" params={{ id: p.id }} done={again}
				label={`${t("passkey.remove")}, ${p.name}`}>{t("passkey.remove")}</Owners>
			<Acts site={page} about={p.id} /></li>)}</ul>}
		<Acts site={page} about="passkey" />
		<div class="btns"><Button hook="passkey-add" act={add}>{t("passkey.add")}</Button></div></div></Section>;
}

function OfSite({ site, q }: { site: Site; q: Query }) {
	const [opened, setOpened] = useState(false);
	const adds = acts.value.some(a => a.about === "phone" && a.site === site.name);
	const { value: a, fault, again } = useOwner<Access>(site, "owner/access", {}, 15, adds);
	if (!a) return fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />;
	const programs = a.grants.filter(g => g.client), tokens = a.grants.filter(g => g.token && !g.client);
	const keys = a.grants.filter(g => !g.token);
	// Nothing of a site goes into a command but a name that is one.
	const name = isName(site.name) ? site.name : "SITE";
	const command = `agentsite token add NAME 'read *' --site ${name}`;
	return <div class="stack">
		{fault && <Failed of={fault} again={again} />}
		{!a.time_is_known && <Note tone="unk" icon="old">{t("access.clock")} <code>agentsite clock --set</code></Note>}
		<Section title={t("access.owners")} n={a.owners.length}>{a.owners.length ? <ul class="list">
			{a.owners.map(o => <li key={o.did} class="top"><span class="soft"><Icon n="key" /></span><div class="grow">
			<h3>{o.did === you.value ? t("access.you") : o.name ? <bdi>{o.name}</bdi> : t("access.owner")}</h3><p>
				{t("access.owner.may")}</p><p class="small"><Key did={o.did} /></p></div></li>)}</ul>
			: <p class="soft">{t("access.unowned")}</p>}</Section>
		{programs.length > 0 && <Loaded part="Programs" site={site} of={programs} now={a.time} done={again} />}
		{([["access.tokens", tokens], ["access.keys", keys]] as const).map(([title, list]) => list.length > 0
			&& <Section key={title} title={t(title)} n={list.length}>
			<ul class="list">{list.map(g => <Row key={g.id} site={site} of={g} now={a.time}
				done={again} />)}</ul></Section>)}
		<Loaded part="Told" site={site} />
		{a.grants.length === 0 && <p class="soft">{t("access.none")}</p>}
		{a.owners.length > 0 && <Section title={t("access.add")}><div class="stack3">
			{home.value && a.owners.some(o => o.did === you.value) && (opened || adds
				? <Loaded part="Phone" site={site} q={q} /> : <div class="btns">
				<Button hook="phone-add" act={() => setOpened(true)}>{t("phone.add")}</Button></div>)}
			<div class="card"><p>{t("access.add.says")}</p><pre class="exact" tabIndex={0}>{command}</pre></div>
		</div></Section>}
		<dl class="kv small"><dt>{t("access.key")}</dt><dd><Key did={site.key ?? a.site} /></dd></dl></div>;
}

function Show({ q }: { q: Query }) {
	const site = siteIn(q);
	return <div class="stack live"><Which view="access" q={q} />{site && <ForOwner site={site}><OfSite key={site.name}
		site={site} q={q} /></ForOwner>}{near && site && !site.owner.value && <Loaded part="TellMe" />}{home.value && <Passkeys conn={home.value} />}<Windows /></div>;
}

export const access: View = { name: "access", title: () => t("nav.access"), icon: "key", nav: () => t("nav.access"),
	scope: siteIn, Show };
