// The site's machine: what is wrong with it and what helps, and which device is at which pin of its header.

import type { Site } from "../site";
import { Loading, Section, State, type IconName, type Tone } from "../ui";
import { s } from "../words-setup";
import { Failed, useOwner } from "./parts";

interface Finding { severity: string; subject: string; says: string; do?: string }
interface Pin { position: number; kind: string; line?: string; signal?: string; devices?: string[] }
interface Pinout { board: string; positions: Pin[]; elsewhere?: string[] }

const listed = <T,>(x: T[] | undefined): T[] => Array.isArray(x) ? x : [];

const ranks: Record<string, [Tone, IconName, "problem" | "warning" | "remark"]> = {
	problem: ["bad", "bad", "problem"], warning: ["away", "bad", "warning"], note: ["safe", "ask", "remark"],
};

function Findings({ site }: { site: Site }) {
	const { value, fault, again } = useOwner<{ findings: Finding[] }>(site, "owner/doctor"), all = listed(value?.findings);
	return <Section title={s("findings")} n={value && all.length} end={value && <button type="button" class="btn bare"
		onClick={again}>{s("look")}</button>}>
		<Failed of={fault} again={again} />
		{!value && !fault && <Loading name={site.name} />}
		{value && !all.length && <p class="soft">{s("findings.none")}</p>}
		{all.length > 0 && <ul class="list" data-findings>{all.map(f => {
			const [tone, icon, word] = Object.hasOwn(ranks, f.severity) ? ranks[f.severity]! : ranks.note!;
			return <li class="top" key={f.subject + f.says}><div class="grow"><b><bdi>{f.subject}</bdi></b>
				<p><bdi>{f.says}</bdi></p>{f.do && <p class="soft"><span class="sr">{s("remedy")}: </span>
					<bdi>{f.do}</bdi></p>}</div><State tone={tone} icon={icon}>{s(word)}</State></li>;
		})}</ul>}</Section>;
}

/** The colours of a kind of position; its name is written, too. */
const classes: Record<string, string> = { "3.3 V": "v3", "5 V": "v5", ground: "gnd", GPIO: "" };

function Cell({ of }: { of?: Pin }) {
	if (!of) return <td />;
	const what = of.line ? [of.line, of.signal ?? (of.kind === "GPIO" ? "" : of.kind)].join(" ") : of.kind === "ground" ? s("ground")
		: of.kind;
	return <td class={of.devices?.length ? "used" : ""} data-pin={of.position}>
		<span class={`no ${Object.hasOwn(classes, of.kind) ? classes[of.kind] : "bus"}`}>{of.position}</span>
		<span><bdi class="small soft">{what}</bdi>{listed(of.devices).length ? <><span class="sr">: </span>
			<b class="block"><bdi>{listed(of.devices).join(", ")}</bdi></b></> : null}</span></td>;
}

function Header({ site }: { site: Site }) {
	const { value, fault, again } = useOwner<Pinout>(site, "owner/pinout");
	const by = new Map(listed(value?.positions).map(p => [p.position, p]));
	return <Section title={s("header")}>
		<Failed of={fault} again={again} />
		{!value && !fault && <Loading name={site.name} />}
		{value && <div class="card"><p class="small soft"><bdi>{value.board}</bdi>. {s("header.how")}</p>
			<table class="pinout"><caption class="sr">{s("header")}</caption>
				<thead><tr><th scope="col"><span class="sr">{s("header.odd")}</span></th>
					<th scope="col"><span class="sr">{s("header.even")}</span></th></tr></thead>
				<tbody>{Array.from({ length: 20 }, (_, i) => <tr key={i}><Cell of={by.get(2 * i + 1)} />
					<Cell of={by.get(2 * i + 2)} /></tr>)}</tbody></table>
			{listed(value.elsewhere).length > 0 && <p class="small">{s("header.elsewhere")} <bdi>
				{listed(value.elsewhere).join(", ")}</bdi></p>}</div>}</Section>;
}

export const Machine = ({ site }: { site: Site }) => <><Findings site={site} /><Header site={site} /></>;
