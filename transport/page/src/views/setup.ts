// The views that set up a site. What they show is in a file of its own, which is loaded when one is opened.

import { createElement, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Fault } from "../rpc";
import { href } from "../route";
import type { Site } from "../site";
import { Loading } from "../ui";
import type { Query, View } from "../views";
import { t } from "../words";
import { Failed, ForOwner, siteIn } from "./parts";

type Part = "Add" | "Edit" | "Claim" | "Journal" | "Machine" | "Phone";
interface Props { site: Site; q: Query }

/** A part of the file that is loaded when something in it is opened. */
export function Loaded({ part, site, q }: { part: Part; site?: Site; q: Query }) {
	const [shown, set] = useState<{ Show?: ComponentType<Props>; fault?: Fault }>({});
	useEffect(() => {
		import("./setting").then(m => set({ Show: m[part] as ComponentType<Props> }), () => set({ fault: new Fault("offline", "") }));
	}, []);
	return shown.Show ? createElement(shown.Show, { site: site!, q }) // a claim has none
		: shown.fault ? createElement(Failed, { of: shown.fault, again: () => location.reload() })
			: createElement(Loading, { name: site?.name ?? "" });
}

const view = (name: string, part: Part, title: () => string): View => ({
	name, title, icon: "board", scope: siteIn, back: q => href("board", { s: siteIn(q)?.name ?? "" }),
	Show: ({ q }: { q: Query }) => {
		const site = siteIn(q);
		return site ? createElement(ForOwner, { site },
			createElement(Loaded, { key: site.name, part, site, q })) : null;
	},
});

export const add = view("add", "Add", () => t("setup.add"));
export const edit = view("edit", "Edit", () => t("setup.edit"));
export const claim: View = {
	name: "claim", icon: "key", title: () => t("claim"), back: () => "#house",
	Show: ({ q }: { q: Query }) => createElement(Loaded, { part: "Claim", q }),
};
