// Programs that sign in by the site's URL: those that ask for it, and those that an owner let in.

import { useMemo, useState } from "preact/hooks";
import { home } from "../session";
import type { Site } from "../site";
import { Button, Countdown, Icon, Loading, Note, Section } from "../ui";
import { age, t } from "../words";
import { s } from "../words-setup";
import { Until, type Granted } from "./access";
import { Row, type Entry } from "./journal";
import { act, acts, Acts, Call, Exactly, Failed, Owners, useOwner } from "./parts";
import { Asks, Permission, Sentence, useMeaning, type Words } from "./permission";

/** A program that asks to sign in. All but the code and the network are its own words. */
export interface SignIn { handle: string; client: string; returns_to: string; local?: boolean; asks: string[]; from: string;
	replaces?: string; seconds_left: number }

const waits = (site: Site, about: string) => acts.value.some(a => a.about === about && a.site === site.name && !a.fault);

const bare = (code: string) => code.replace(/[\s-]/g, "").toUpperCase();

/** A program that asks. Its code is not shown: who allows it writes the code that their own browser shows. */
function Asking({ site, of, done }: { site: Site; of: SignIn; done: () => void }) {
	const came = useMemo(() => performance.now(), [of.seconds_left]);
	const [words, set] = useState<Words>({ may: "read *", until: "" }), meaning = useMeaning(words);
	const [code, setCode] = useState(""), same = bare(code) === bare(of.handle);
	const allow = async () => {
		if (await act({ name: site.name, conn: home.value! }, of.handle, "sign-in/allow", { site: site.name,
			handle: of.handle, may: words.may, ...words.until && { until: words.until } }, `${t("allow")}, ${of.client}`)) done();
	};
	return <article class="card edge-acc stack3" data-signin={of.handle}>
		<h3><bdi>{of.client}</bdi> {s("signin.asks")}</h3>
		<p class="small soft"><bdi>{site.name}</bdi> · <b><Countdown seconds={of.seconds_left} came={came} /></b>
			{" "}{t("waiting.left")}</p>
		<label class="field"><b>{s("signin.code")}</b><input name="code" value={code} autocomplete="off" spellcheck={false}
			autocapitalize="characters" onInput={e => setCode(e.currentTarget.value)} /></label>
		<p class={code && !same ? "small badtext" : "small soft"}>{s(code && !same ? "signin.other" : "signin.own")}</p>
		<dl class="kv"><dt>{s("signin.returns")}</dt><dd><b><bdi>{of.returns_to}</bdi></b></dd>
			<dt>{s("signin.wants")}</dt><dd><Asks site={site} of={of.asks} /></dd>
			<dt>{s("signin.from")}</dt><dd class="mono small"><bdi>{of.from}</bdi></dd></dl>
		{of.local && <Note tone="unk" icon="unknown"><span data-local>{s("signin.local")}</span></Note>}
		{of.replaces && <p class="small">{s("signin.replaces", { name: of.replaces })}</p>}
		{home.value && <Permission site={site} words={words} set={set} meaning={meaning} />}
		<Acts site={site} about={of.handle} />
		{!waits(site, of.handle) && <div class="btns fill eq">
			<Owners site={site} about={of.handle} method="owner/deny" params={{ name: of.handle }} done={done}
				label={`${t("deny")}, ${of.client}`}>{t("deny")}</Owners>
			<Button hook="sign-in/allow" why={!home.value || !!meaning.fault || !same} act={allow}
				label={`${t("allow")}, ${of.client}`}>{t("allow")}</Button></div>}
	</article>;
}

export const SignIns = ({ site, of, done }: { site: Site; of: SignIn[]; done: () => void }) => <>{of.map(one =>
	<Asking key={one.handle} site={site} of={one} done={done} />)}</>;

/** Changes what a program may do; may is what is proposed. The act is about what the caller shows it at. */
function Change({ site, of, may = of.may[0] ?? "", about = of.id, done }: { site: Site; of: Granted; may?: string;
	about?: string; done: () => void }) {
	const [words, set] = useState<Words>({ may, until: of.until ?? "never" });
	const meaning = useMeaning(words);
	const change = async () => {
		if (await act({ name: site.name, conn: home.value! }, about, "token/change", { site: site.name, name: of.token,
			...words }, `${s("program.change")}, ${of.client}`)) done();
	};
	return <div class="stack3"><Permission site={site} words={words} set={set} meaning={meaning} />
		<p class="small soft">{s("program.change.says")}</p>
		{!waits(site, about) && <div class="btns"><Button class="pri" hook="token/change" why={!!meaning.fault} act={change}>
			{s("program.change.do")}</Button></div>}</div>;
}

/** A call that was refused to a program that signed in; may is its permission with what the call needs. */
export interface Wish { handle: string; token: string; client: string; returns_to: string; who: string; tool: string;
	arguments?: Record<string, unknown>; times: number; seconds_ago: number; may: string }

export function Wishes({ site, of, done }: { site: Site; of: Wish[]; done: () => void }) {
	const access = useOwner<{ grants: Granted[] }>(site, "owner/access", {}, 0,
		of.map(w => w.may).join());
	return <>{of.map(w => {
		const grant = access.value?.grants.find(g => g.token === w.token);
		return <article key={w.handle} class="card edge-acc stack3" data-wish={w.handle}>
			<h3><bdi>{w.client}</bdi> {s("wish.refused")} <Call of={w} site={site} /></h3>
			<p class="small soft"><bdi>{site.name}</bdi> · {s("program.host")} <bdi>{w.returns_to}</bdi> ·
				{" "}{s("wish.times", { n: w.times, time: age(w.seconds_ago) })}</p>
			<Exactly lines={[["tool", w.tool], ...Object.entries(w.arguments ?? {}), ["from", w.who], ["handle", w.handle]]} />
			<p>{s("wish.says")}</p>
			{grant && home.value && <Change key={grant.id} site={site} of={grant} may={w.may} about={w.handle}
				done={done} />}
			<Acts site={site} about={w.handle} />
			{!waits(site, w.handle) && <div class="btns"><Owners site={site} about={w.handle} method="owner/deny"
				params={{ name: w.handle }} done={done} label={`${t("deny")}, ${w.client}`}>{t("deny")}</Owners></div>}
		</article>;
	})}</>;
}

function Did({ site, of }: { site: Site; of: Granted }) {
	const { value, fault, again } = useOwner<{ entries: Entry[] }>(site, "owner/journal", { who: of.who, limit: 20 }, 10);
	if (!value) return fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />;
	return value.entries.length ? <ul class="list">{[...value.entries].reverse().map(e => <Row key={e.seq} site={site}
		of={e} />)}</ul> : <p class="small soft">{s("program.did.none")}</p>;
}

function Program({ site, of, now, done }: { site: Site; of: Granted; now: string; done: () => void }) {
	const [changing, setChanging] = useState(false), [did, setDid] = useState(false);
	const called = of.called_seconds_ago, may = of.may[0] ?? "", meaning = useMeaning({ may, until: "" }).value;
	return <li class="top wrap" data-program={of.token}><span class="soft"><Icon n="chip" /></span>
		<div class="grow"><h3><bdi>{of.client}</bdi></h3>
			<p class="small soft">{s("program.host")} <bdi>{of.returns_to}</bdi> · <bdi class="mono">{of.token}</bdi></p>
			{meaning && <p><Sentence site={site} of={meaning} /></p>}<p class="mono small"><bdi>{may}</bdi></p>
			<p class="small soft"><Until at={of.until} now={now} /> · <span data-called={called ?? ""}>
				{called ? s("program.called", { time: age(called) }) : s("program.silent")}</span></p></div>
		<div class="whole"><Acts site={site} about={of.id} /><div class="btns">
			{of.who && <button type="button" class="btn" aria-pressed={did} onClick={() => setDid(!did)}>
				{s("program.did")}</button>}
			{home.value && <button type="button" class="btn" data-act="change" aria-pressed={changing}
				onClick={() => setChanging(!changing)}>{s("program.change")}</button>}
			{!waits(site, of.id) && <Owners site={site} about={of.id} method="owner/revoke" params={{ name: of.token }}
				done={done} label={`${s("program.end")}, ${of.client}`}>{s("program.end")}</Owners>}</div>
			{did && <Did site={site} of={of} />}
			{changing && <Change key={of.id} site={site} of={of} done={() => { setChanging(false); done(); }} />}</div></li>;
}

export const Programs = ({ site, of, now, done }: { site: Site; of: Granted[]; now: string; done: () => void }) =>
	<Section title={s("program.title")} n={of.length}><div class="stack3"><p class="small soft">{s("program.says")}</p>
		<ul class="list">{of.map(g => <Program key={g.token} site={site} of={g} now={now} done={done} />)}</ul></div></Section>;
