// The journal of a site: who moved what, by whose word. The site verifies its chain. What this browser
// noted of it before is compared each time, so that a journal which was made anew shows.

import { useEffect, useState } from "preact/hooks";
import type { Site } from "../site";
import { Button, Choice, Icon, Loading, Note, State } from "../ui";
import type { Query, View } from "../views";
import { lang, t } from "../words";
import { Call, Exactly, Failed, ForOwner, siteIn, useOwner, When, Which, Who, who as nameOf, type Answer,
	type Called } from "./parts";
import { outcome } from "./tasks";
import { Why } from "./why";

/** A call with its outcome, refusals counted together, or an event. */
export interface Entry {
	seq: number; time: string; who?: string; via?: string[]; tool?: string; arguments?: Called & Record<string,
		unknown>;
	key?: string; outcome: string; says?: string; result?: Record<string, unknown> | null; count?: number;
}

interface Page { entries: Entry[]; older?: boolean; first: number; last: number; hash?: string }
interface Noted { seq: number; hash: string; at: string }

/** What is noted of a journal belongs to the key of the site, not to its name. */
const place = (did: string) => `journal ${did}`;

function noted(did: string): Noted | undefined {
	try {
		const n = JSON.parse(localStorage.getItem(place(did)) ?? "null") as Noted | null;
		return n && Number.isSafeInteger(n.seq) && n.seq > 0 && typeof n.hash === "string" ? n : undefined;
	} catch {
		return undefined;
	}
}

const filters = ["all", "moves", "refused", "owner"] as const;
const moves = ["switch_output", "set_level", "release_output", "emergency_stop"];
const tools = [...moves, "show_text", "capture_image", "ask_agent"];
const chosen: Record<(typeof filters)[number], (e: Entry) => boolean> = {
	all: () => true,
	moves: e => moves.includes(e.tool ?? "") && e.outcome !== "refused",
	refused: e => !["done", "event", "no result"].includes(e.outcome),
	owner: e => !!e.tool && !!e.who && !tools.includes(e.tool),
};

function Outcome({ of }: { of: Entry }) {
	if (of.outcome === "done") {
		const moved = of.result?.safe !== undefined && of.result.value !== of.result.safe;
		return <State tone="safe" icon={of.tool === "emergency_stop" ? "stopFull" : moved ? "away" : "safe"}>
			{t("done")}</State>;
	}
	if (of.outcome === "event") return null;
	if (of.outcome === "no result") return <State tone="safe" icon="wait">{t("journal.noResult")}</State>;
	return <State tone="safe" icon={of.outcome === "unknown_outcome" ? "unknown" : "no"}>
		{of.outcome === "refused" ? t("journal.refused") : outcome(of.outcome)}{(of.count ?? 0) > 1 ? ` × ${of.count}`
			: ""}</State>;
}

export function Row({ site, of }: { site: Site; of: Entry }) {
	const kind = of.outcome === "refused" && of.says ? outcome(of.says) : undefined;
	return <li class="top"><When at={of.time} /><div class="grow"><details class="bare"><summary class="plain">
		{of.outcome === "event" ? <bdi>{of.says}</bdi> : <Call of={of} site={site} />}
		<span class="small soft block"><Who id={of.who} via={of.via} />{kind ? <> · {kind}</>
			: of.outcome !== "event" && of.says ? <> · <bdi>{of.says}</bdi></> : null}</span></summary>
		<Exactly lines={[["seq", of.seq], ["time", of.time], ["who", of.who], ["via", of.via?.join(", ")], ["tool",
			of.tool], ["arguments", of.arguments],
			["key", of.key], ["outcome", of.outcome], ["says", of.says], ["result", of.result
				?? undefined], ["count", of.count]]} /></details></div>
		<Outcome of={of} /></li>;
}

/** What is known of the chain: what the site verified, and whether it is the journal that this browser
 *  knew. A site answers about its journal, but not about one that has no such entry. */
function Proof({ site, did, page }: { site: Site; did: string; page: Answer<Page> }) {
	const [before, setBefore] = useState(() => noted(did));
	const proof = useOwner<Page>(site, "owner/journal", before ? { limit: 1, known: before.seq,
		known_hash: before.hash } : { limit: 1 }, 300);
	const last = proof.value, kind = proof.fault?.kind;
	const differs = (kind === "unavailable" || kind === "invalid") && page.value && !page.fault && before;
	useEffect(() => {
		if (last?.last && last.hash && !proof.fault) localStorage.setItem(place(did), JSON.stringify({ seq: last.last,
			hash: last.hash, at: new Date().toISOString() }));
	}, [last?.last, proof.fault]);
	if (page.fault) return <Note tone="bad" icon="bad"><b>{t("journal.damaged")}</b> <bdi>
		{page.fault.message}</bdi></Note>;
	if (differs) {
		return <Note tone={kind === "invalid" ? "" : "bad"} icon={kind === "invalid" ? "old" : "bad"}>
			<b>{t(kind === "invalid" ? "journal.gone" : "journal.other")}</b> <bdi>{proof.fault!.message}</bdi>
			<div class="btns"><button class="btn" onClick={() => { localStorage.removeItem(place(did));
				setBefore(undefined); }}>{t("journal.forget", { seq: before.seq })}</button></div></Note>;
	}
	if (!last?.last) return null;
	return <p class="small proof"><State tone="ok" icon="seal">
		{t("journal.verified", { first: last.first, last: last.last })}</State>{" "}
		<span class="soft">{before ? t("journal.same", { seq: before.seq, at: new Date(before.at)
			.toLocaleDateString(lang) })
			: t("journal.noted", { seq: last.last })}</span></p>;
}

function OfSite({ site, q }: { site: Site; q: Query }) {
	const access = useOwner<{ site: string }>(site, "owner/access"), did = access.value?.site;
	if (!did) return access.fault ? <Failed of={access.fault} again={access.again} /> : <Loading name={site.name} />;
	return <Entries key={did} site={site} did={did} q={q} />;
}

function Entries({ site, did, q }: { site: Site; did: string; q: Query }) {
	const [which, setWhich] = useState<(typeof filters)[number]>("all"), [output, setOutput] = useState(q.get("p")
		?? ""), [who, setWho] = useState("");
	const [older, setOlder] = useState<Entry[]>([]), [more, setMore] = useState<boolean>();
	const filter = { ...(output && { output }), ...(who && { who }), limit: 100 };
	const page = useOwner<Page>(site, "owner/journal", filter, 30);
	const value = page.value;
	useEffect(() => { setOlder([]); setMore(undefined); }, [output, who]);
	const all = [...older, ...value?.entries ?? []], seen = new Set<number>();
	const list = all.filter(e => !seen.has(e.seq) && seen.add(e.seq)).sort((a, b) => b.seq - a.seq)
		.filter(chosen[which]);
	const fetchOlder = async () => {
		const got = await site.conn.call<Page>("owner/journal", { ...filter, before: Math.min(...all.map(e => e.seq)) },
			{ timeout: 60_000 });
		setOlder(old => [...got.entries, ...old]);
		setMore(!!got.older);
	};
	const people = [...new Set(all.map(e => e.who).filter(w => !!w))] as string[];
	const outputs = site.outputs.value.map(o => o.point);
	return <div class={`two l live ${output ? "whyc" : ""}`}>
		<section class="sec">
			<Proof site={site} did={did} page={page} />
			<Choice label={t("journal.filter")} of={filters.map(f => ({ value: f, text: t(`journal.${f}`) }))}
				chosen={which} choose={setWhich} />
			<div class="btns">
				<label class="field inline"><span class="small soft">{t("journal.output")}</span><select value={output}
					onChange={e => setOutput(e.currentTarget.value)}>
					<option value="">{t("journal.any")}</option>{outputs.map(o => <option key={o} value={o}>
						{o}</option>)}</select></label>
				<label class="field inline"><span class="small soft">{t("journal.who")}</span><select value={who}
					onChange={e => setWho(e.currentTarget.value)}>
					<option value="">{t("journal.any")}</option>{people.concat(who && !people.includes(who) ? who
						: []).map(w => <option key={w} value={w}>{nameOf(w)}</option>)}</select></label></div>
			{!value ? !page.fault && <Loading name={site.name} /> : list.length === 0 ? <p class="soft">
				{t("journal.empty")}</p>
				: <ul class="list">{list.flatMap((e, n) => [
					(n === 0 || day(list[n - 1]!.time) !== day(e.time)) && <li class="day" key={day(e.time)}><h2>
						{day(e.time)}</h2></li>, <Row key={e.seq} site={site} of={e} />])}</ul>}
			{(more ?? value?.older) && <div class="btns"><Button act={fetchOlder}>{t("journal.older")}</Button></div>}
			<p class="small soft"><Icon n="seal" /> {t("journal.how")}</p>
		</section>
		{output && <Why site={site} point={output} />}
	</div>;
}

const day = (at: string) => new Date(at).toLocaleDateString(lang, { weekday: "long", day: "numeric", month: "long" });

function Show({ q }: { q: Query }) {
	const site = siteIn(q);
	return site ? <div class="stack"><Which view="journal" q={q} /><ForOwner site={site}><OfSite key={site.name}
		site={site} q={q} /></ForOwner></div> : null;
}

export const journal: View = { name: "journal", title: () => t("nav.journal"), icon: "journal",
	nav: () => t("nav.journal"), owner: true, scope: siteIn, Show };
