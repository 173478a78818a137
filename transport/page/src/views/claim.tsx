// Claiming a site: the person copies what it shows, and confirms it where agentsite open runs.

import { useState } from "preact/hooks";
import { href } from "../route";
import { home } from "../session";
import { Button } from "../ui";
import type { Query } from "../views";
import { t } from "../words";
import { s } from "../words-setup";
import { act, Acts, acts } from "./parts";

export function Claim({ q }: { q: Query }) {
	const did = q.get("k") ?? "", [words, setWords] = useState("");
	const page = { name: "", conn: home.value! }, waits = acts.value.some(a => a.about === "claim" && !a.fault);
	const take = async () => {
		const claimed = await act<{ name: string }>(page, "claim", "board/claim", { did, words }, s("claimDo"),
			did ? { did, words } : { address: words.trim().split(/\s+/).at(-1) });
		if (!claimed) return;
		history.replaceState(null, "", href("site", { s: claimed.name }));
		location.reload(); // the session then has the new site
	};
	return <div class="stack one"><div class="card stack3" data-view="claim">
		{did && <h2><bdi>{q.get("n")}</bdi></h2>}
		<p>{s("claimMore")}</p><p class="small soft">{t("unclaimedWhere")}</p>
		<label class="field"><b>{s(did ? "claimSecret" : "claimLine")}</b><input name="words" value={words} autocomplete="off"
			autocapitalize="off" spellcheck={false} placeholder={did ? undefined : "agentsite://…"}
			onInput={e => setWords(e.currentTarget.value)} /></label>
		{did && <p class="small soft">{s("claimSecretMore")} <code class="exact">{did}</code></p>}
		<Acts site={page} about="claim" />
		{waits && <p>{s("claimRecovery")}</p>}
		<div class="btns"><Button class="pri" hook="claim" why={!words.trim() || waits} act={take}>{s("claimDo")}</Button></div>
	</div></div>;
}
