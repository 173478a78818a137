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

type Part = "Add" | "Answers" | "Edit" | "Claim" | "Journal" | "Machine" | "Phone" | "Programs" | "SignIns" | "TellMe" |
	"Told" | "Wishes";

/** A part of the file that is loaded when something in it is opened. It takes the other properties. */
export function Loaded({ part, ...more }: { part: Part; site?: Site; q?: Query; of?: object[]; now?: string;
	done?: () => void }) {
	const [shown, set] = useState<{ Show?: ComponentType<any>; fault?: Fault }>({});
	useEffect(() => {
		import("./setting").then(m => set({ Show: m[part] as ComponentType<any> }),
			() => set({ fault: new Fault("offline", "") }));
	}, []);
	return shown.Show ? createElement(shown.Show, more)
		: shown.fault ? createElement(Failed, { of: shown.fault, again: () => location.reload() })
			: createElement(Loading, { name: more.site?.name ?? "" });
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
