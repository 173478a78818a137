// What is on the network and nobody owns: rows of the house, each with the way to claim it.

import { href } from "../route";
import { home } from "../session";
import { Icon, Section, State } from "../ui";
import { t } from "../words";
import { useAsk } from "./parts";

/** A site on the network that nobody owns, as it calls itself. */
interface Board { name: string; did: string }

/** The sites that nobody owns, and the way to claim one by its address. */
export function Near() {
	const conn = home.value;
	const found = useAsk(conn && (signal => conn.call<{ boards: Board[] }>("board/list", {}, { signal })), [conn], 60)
		.value?.boards ?? [];
	return conn ? <Section title={t("near")} n={found.length || undefined}><ul class="list">
		{found.map(f => <li key={f.did} class="p1"><a class="line" href={href("claim", { k: f.did, n: f.name })} data-near={f.name}>
			<span class="grow"><b><bdi>{f.name}</bdi></b></span><State tone="acc" icon="key">{t("unowned")}</State></a></li>)}
		<li class="p1"><a class="line" href="#claim" data-claim><Icon n="key" /><span class="grow">{t("claim")}</span></a></li>
	</ul></Section> : null;
}
