// Letting a phone use a site: it opens the link of a code, and the person compares what it shows, and confirms.

import { useEffect, useState } from "preact/hooks";
import { home } from "../session";
import type { Site } from "../site";
import { Button, spoken } from "../ui";
import { t } from "../words";
import { s } from "../words-setup";
import { act, Acts, acts } from "./parts";
import { Permission, useMeaning, type Words } from "./permission";

/** What agentsite open tells of a phone: first the link, with the rows of its QR code, then whose key came. */
export interface Told { link?: string; qr?: string[]; letters?: string; name?: string; may?: string; until?: string }

/** A QR code, dark on light in any theme. A 1 is a dark square. */
function Code({ rows }: { rows: string[] }) {
	const size = rows.length + 8; // with four squares around it
	const dark = rows.flatMap((row, y) => [...row.matchAll(/1+/g)].map(r =>
		`M${r.index + 4} ${y + 4}h${r[0].length}v1h-${r[0].length}z`));
	return <svg role="img" aria-label={s("phone.code")} width={5 * size} height={5 * size}
		viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges" data-qr>
		<path fill="#fff" d={`M0 0h${size}v${size}h-${size}z`} /><path fill="#000" d={dark.join("")} /></svg>;
}

export function Phone({ site }: { site: Site }) {
	const [name, setName] = useState(""), [by_address, setAddress] = useState(false);
	const [words, set] = useState<Words>({ may: "read *, set *, stop", until: "90d" }), meaning = useMeaning(words);
	const add = () => act({ name: site.name, conn: home.value! }, "phone", "phone/add",
		{ site: site.name, name, ...words, by_address }, t("phone.add"));
	const one = acts.value.find(a => a.about === "phone" && a.site === site.name), told = one?.told;
	const letters = told?.letters, waits = one && !one.fault;
	useEffect(() => { if (letters) spoken.value = `${s("phone.compare")} ${letters}`; }, [letters]);
	return <div class="card stack3" data-phone>
		{waits && letters && <><h3>{s("phone.compare")}</h3><p class="val"><code data-letters>{letters}</code></p>
			<p>{s("phone.only")}</p></>}
		{waits && told?.link && <><p>{s("phone.scan")}</p><Code rows={told.qr ?? []} />
			<p class="small soft">{s("phone.type")}</p><pre class="exact" tabIndex={0} data-link>{told.link}</pre></>}
		{(letters || one?.fault) && <Acts site={site} about="phone" />}
		{waits ? !letters && <div class="btns"><button type="button" class="btn" onClick={one.cancel}>
			{t("cancel")}</button></div> : <><label class="field"><b>{s("phone.name")}</b><input name="name" value={name}
				placeholder={s("phone.name.usual")} autocomplete="off" spellcheck={false}
				onInput={e => setName(e.currentTarget.value)} /></label>
				<Permission site={site} words={words} set={set} meaning={meaning} />
				<label class="check"><input type="checkbox" checked={by_address}
					onChange={e => setAddress(e.currentTarget.checked)} /><span>{s("phone.address")}</span></label>
				<p class="small soft">{s("phone.more")}</p>
				<div class="btns"><Button class="pri" hook="phone" act={add}>{s("phone.show")}</Button></div></>}
	</div>;
}
