// The house: what is away from safe first, then what is not well, then the sites.

import type { View } from "../views";
import { href } from "../route";
import { sites } from "../site";
import { Section } from "../ui";
import { t } from "../words";

export const house: View = {
	name: "house", icon: "house", title: () => t("house"), nav: () => t("house"),
	Show: () => <Section title={t("sites")} n={sites.value.length}>
		<ul class="list">{sites.value.map(s => <li class="p1"><a class="line" href={href("site", { s: s.name })}><bdi>{s.name}</bdi></a></li>)}</ul>
	</Section>,
};
