// A site: outputs away from safe as cards, those at safe as rows, then readings, then the board.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Query, View } from "../views";
import { OutputCard, OutputRow, wantsCard } from "../output";
import { ofBoard, readable, ReadingRow } from "../reading";
import { isOutput, siteOf, type Point, type Site } from "../site";
import { Button, deviceOf, Loading, Name, Section, State, toast } from "../ui";
import { t } from "../words";

export const site: View = {
	name: "site", icon: "site", title: q => siteOf(q.get("s"))?.name ?? t("site"), scope: q => siteOf(q.get("s")), back: () => "#house", Show,
};

function Show({ q }: { q: Query }) {
	const s = siteOf(q.get("s"));
	if (!s) return <div class="card"><h3>{t("noSuchSite")}</h3></div>;
	const points = s.points.value;
	if (!points) return <Loading name={s.name} />;
	const outs = s.outputs.value, cards = outs.filter(p => wantsCard(s, p)), rows = outs.filter(p => !wantsCard(s, p));
	const rest = points.filter(p => !isOutput(p)), own = rest.filter(p => readable(p) && !ofBoard(p)), board = rest.filter(ofBoard);
	const devices = [...new Set(own.map(p => deviceOf(p.point)))], things = rest.filter(p => !readable(p));
	const ill = board.some(p => { const r = s.value(p.point).value; return r && r.quality !== "good"; });
	return <div class="stack live" data-view="site">
		{outs.length > 0 && <Section title={t("outputs")} n={outs.length} end={cards.length ? undefined : <State tone="safe" icon="safe">{t("allAtSafe")}</State>}>
			<div class="cards">{cards.map(p => <OutputCard key={p.point} s={s} p={p} />)}
				{rows.length > 0 && <ul class={"list rest" + (cards.length ? "" : " all")}>{rows.map(p => <OutputRow key={p.point} s={s} p={p} />)}</ul>}</div>
		</Section>}
		<div class="two">
			<div class="stack">{devices.map(d => <Section key={d} title={devices.length === 1 ? t("readings") : <Name of={d} />}>
				<ul class="list">{own.filter(p => deviceOf(p.point) === d).map(p => <ReadingRow key={p.point} s={s} p={p} />)}</ul></Section>)}</div>
			<div class="stack">
				{things.length > 0 && <Section title={t("cameraDisplay")}><ul class="list">{things.map(p => p.kind === "image" ? <Camera key={p.point} s={s} p={p} /> : <Display key={p.point} s={s} p={p} />)}</ul></Section>}
				{board.length > 0 && <details class="list fold"><summary>{t("boardItself")}<span class="r">{ill ? <State tone="unk" icon="old">{t("notWell")}</State> : <State tone="safe" icon="safe">{t("well")}</State>}</span></summary>
					<ul>{board.map(p => <ReadingRow key={p.point} s={s} p={p} spark={false} />)}</ul></details>}
			</div>
		</div>
	</div>;
}

function Camera({ s, p }: { s: Site; p: Point }) {
	const url = useSignal<string | undefined>(undefined);
	useEffect(() => () => { if (url.peek()) URL.revokeObjectURL(url.peek()!); }, []);
	const take = async () => {
		const a = await s.conn.ask<any>("capture_image", { camera: p.point }, { timeout: 30_000 });
		const image = a.content.find(c => c.type === "image");
		if (!image || !/^image\/(png|jpeg|webp|gif)$/.test(image.mimeType)) return toast(t("noPicture"), true);
		const bytes = Uint8Array.from(atob(image.data), c => c.charCodeAt(0));
		if (url.peek()) URL.revokeObjectURL(url.peek()!);
		url.value = URL.createObjectURL(new Blob([bytes], { type: image.mimeType }));
	};
	return <li class="wrap" data-camera={p.point}><div class="grow"><bdi>{s.title(p.point)}</bdi><br /><span class="small soft"><bdi>{p.description}</bdi></span></div>
		<Button act={take} why={s.gone.value > 0} hook="picture">{t("takePicture")}</Button>
		{url.value && <img class="pic" src={url.value} alt={t("pictureOf", { name: s.title(p.point) })} />}</li>;
}

function Display({ s, p }: { s: Site; p: Point }) {
	const text = useSignal("");
	const show = async () => {
		await s.conn.tool("show_text", { display: p.point, text: text.value });
		toast(t("shown"));
	};
	return <li class="wrap" data-display={p.point}><label class="grow" for={"d-" + p.point}><bdi>{s.title(p.point)}</bdi><br /><span class="small soft"><bdi>{p.description}</bdi></span></label>
		<span class="say2"><input id={"d-" + p.point} class="in" value={text} autocomplete="off" maxLength={256} onInput={e => { text.value = e.currentTarget.value; }} />
			<Button act={show} why={s.gone.value > 0} hook="show">{t("showText")}</Button></span></li>;
}
