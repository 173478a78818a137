// The journal of a site: who moved what, by whose word. Its view is loaded when it is opened.

import type { Site } from "../site";
import { State } from "../ui";
import type { Query, View } from "../views";
import { t } from "../words";
import { Call, Exactly, ForOwner, siteIn, When, Which, Who, type Called, type Names } from "./parts";
import { Loaded } from "./setup";
import { outcome } from "./tasks";

/** A call with its outcome, refusals counted together, or an event. */
export interface Entry {
	seq: number; time: string; who?: string; via?: string[]; tool?: string; arguments?: Called & Record<string,
		unknown>;
	key?: string; outcome: string; says?: string; result?: Record<string, unknown> | null; count?: number;
	/** The arguments and the result as they were hashed. */
	exactly?: { arguments?: string; result?: string };
}

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

export function Row({ site, of, names }: { site: Site; of: Entry; names?: Names }) {
	const kind = of.outcome === "refused" && of.says ? outcome(of.says) : undefined;
	return <li class="top"><When at={of.time} /><div class="grow"><details class="bare"><summary class="plain">
		{of.outcome === "event" ? <bdi>{of.says}</bdi> : <Call of={of} site={site} />}
		<span class="small soft block"><Who id={of.who} via={of.via} names={names} />{kind ? <> · {kind}</>
			: of.outcome !== "event" && of.says ? <> · <bdi>{of.says}</bdi></> : null}</span></summary>
		<Exactly lines={[["seq", of.seq], ["time", of.time], ["who", of.who], ["via", of.via?.join(", ")], ["tool",
			of.tool], ["arguments", of.exactly?.arguments ?? of.arguments],
			["key", of.key], ["outcome", of.outcome], ["says", of.says], ["result", of.exactly?.result
				?? of.result ?? undefined], ["count", of.count]]} /></details></div>
		<Outcome of={of} /></li>;
}

function Show({ q }: { q: Query }) {
	const site = siteIn(q);
	return site ? <div class="stack"><Which view="journal" q={q} /><ForOwner site={site}><Loaded key={site.name}
		part="Journal" site={site} q={q} /></ForOwner></div> : null;
}

export const journal: View = { name: "journal", title: () => t("nav.journal"), icon: "journal",
	nav: () => t("nav.journal"), owner: true, scope: siteIn, Show };
