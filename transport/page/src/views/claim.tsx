// Claiming a site: the person copies what it shows, and confirms it where agentsite open runs.

import { useState } from "preact/hooks";
import { Fault } from "../rpc";
import { href } from "../route";
import { claim } from "../session";
import { Button, Note } from "../ui";
import type { Query } from "../views";
import { t } from "../words";
import { s } from "../words-setup";
import { Failed } from "./parts";

export function Claim({ q }: { q: Query }) {
	const did = q.get("k") ?? "", [words, setWords] = useState(""), [stop, setStop] = useState<AbortController>();
	const [fault, setFault] = useState<Fault>();
	const take = async () => {
		const stop = new AbortController();
		setStop(stop);
		setFault(undefined);
		try {
			const name = await claim(did, words, stop.signal);
			history.replaceState(null, "", href("site", { s: name }));
			location.reload(); // the session then has the new site
		} catch (e) {
			if (!stop.signal.aborted) setFault(e instanceof Fault ? e : new Fault("offline", ""));
			setStop(undefined);
		}
	};
	return <div class="stack one"><div class="card stack3" data-view="claim">
		{did && <h2><bdi>{q.get("n")}</bdi></h2>}
		<p>{s("claimMore")}</p><p class="small soft">{t("unclaimedWhere")}</p>
		<label class="field"><b>{s(did ? "claimSecret" : "claimLine")}</b><input name="words" value={words} autocomplete="off"
			autocapitalize="off" spellcheck={false} onInput={e => setWords(e.currentTarget.value)} /></label>
		{did && <p class="small soft">{s("claimSecretMore")} <code class="exact">{did}</code></p>}
		{stop && <Note icon="key"><b>{t("confirmInTerminal")}</b> {s("claimRecovery")}
			<div class="btns"><button type="button" class="btn" onClick={() => stop.abort()}>{t("cancel")}</button></div></Note>}
		<Failed of={fault} />
		<div class="btns"><Button class="pri" hook="claim" why={!words.trim() || !!stop} act={take}>{s("claimDo")}</Button></div>
	</div></div>;
}
