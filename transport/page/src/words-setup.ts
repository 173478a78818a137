// The words of the views that set up a site, and of the journal, which are loaded with them.

import { lang, texts } from "./words";

const en = {
	"found": "Found", "looking": "Looking for connected parts …", "none": "No new part was found that has a driver.",
	"other": "Another part", "find": "Driver or part, such as relay or bme280", "take": "Choose",
	"nothing": "No driver has that name.", "part": "The part", "name": "Name of the device", "needed": "always needed",
	"usual": "when not written: {value}", "more": "More keys", "see": "See the change", "change": "The change",
	"write": "Write it", "well": "Go back where a device does not answer afterwards",
	"mistakes": "Mistakes", "line": "line {n}", "warnings": "Warnings", "wired": "Wiring of {entry}",
	"text": "The configuration’s text", "right": "The site would take it.", "same": "Nothing is changed.",
	"conflict": "Somebody changed the configuration meanwhile. Nothing of yours is written.",
	"keep": "Go on with my text", "drop": "Take the text as it is now", "again": "Choose another part",
	"added": "{name} is added.", "checking": "Checking …",
	"complete": "Complete (Ctrl+Space)", "complete.of": "What can stand here",
	"complete.none": "Nothing is known that can stand here.",
	"findings": "Findings", "findings.none": "No problem was found.", "problem": "Problem", "warning": "Warning",
	"remark": "Note", "remedy": "What helps", "header": "The header’s pins",
	"header.how": "From above, the end of the SD card at the top. Switch the board off before you wire it.",
	"header.odd": "Odd positions", "header.even": "Even positions", "header.elsewhere": "Not on this header:",
	"journal.noted": "This browser has noted entry {seq}, and compares it next time.",
	"journal.gone": "The entry that this browser noted is not kept any more.",
	"journal.forget": "Forget entry {seq}, and note the last one",
	"chain.whole": "One entry hashed here: the chain is whole.|{n} entries hashed here: the chain is whole.",
	"chain.same": "It goes on from entry {seq}, which this browser noted on {at}.",
	"chain.far": "Entry {seq}, which this browser noted on {at}, is further back.",
	"chain.how": "The page hashes the chain itself, and shows what it hashed. This browser notes the last entry, and "
		+ "compares it next time.",
	"chain.most": "The page keeps {n} entries. agentsite journal --verify hashes all.",
	"chain.broken": "The chain is broken.",
	"chain.none": "The site does not give entry {from} as it is hashed.", "chain.unread": "Entry {from} cannot be read.",
	"chain.place": "Another entry stands where {from} should.",
	"chain.changed": "The entries {from} to {to} are not those that the next one is chained to: one was changed, "
		+ "removed, moved or put in.",
	"chain.cut": "It ends with entry {from} and had {to}: its end was cut off.",
	"chain.noted": "Entry {from} is not the one that this browser knew.",
};

const de: Record<keyof typeof en, string> = {
	"found": "Gefunden", "looking": "Angeschlossene Teile werden gesucht …",
	"none": "Kein neues Teil mit einem Treiber wurde gefunden.",
	"other": "Ein anderes Teil", "find": "Treiber oder Teil, etwa relay oder bme280", "take": "Wählen",
	"nothing": "Kein Treiber heißt so.", "part": "Das Teil", "name": "Name des Geräts", "needed": "immer nötig",
	"usual": "sonst: {value}", "more": "Weitere Schlüssel", "see": "Änderung ansehen", "change": "Die Änderung",
	"write": "Schreiben", "well": "Zurück, wenn danach ein Gerät nicht antwortet",
	"mistakes": "Fehler", "line": "Zeile {n}", "warnings": "Warnungen", "wired": "Anschluss von {entry}",
	"text": "Text der Konfiguration", "right": "Die Anlage nähme sie an.", "same": "Nichts ist geändert.",
	"conflict": "Jemand hat die Konfiguration inzwischen geändert. Von dir ist nichts geschrieben.",
	"keep": "Mit meinem Text weiter", "drop": "Den jetzigen Text nehmen", "again": "Anderes Teil wählen",
	"added": "{name} ist hinzugefügt.", "checking": "Wird geprüft …",
	"complete": "Ergänzen (Strg+Leertaste)", "complete.of": "Was hier stehen kann",
	"complete.none": "Es ist nichts bekannt, was hier stehen kann.",
	"findings": "Befunde", "findings.none": "Kein Problem wurde gefunden.", "problem": "Problem", "warning": "Warnung",
	"remark": "Hinweis", "remedy": "Was hilft", "header": "Die Stiftleiste",
	"header.how": "Von oben, das Ende mit der SD-Karte oben. Schalte das Board aus, bevor du es verdrahtest.",
	"header.odd": "Ungerade Stifte", "header.even": "Gerade Stifte", "header.elsewhere": "Nicht an dieser Leiste:",
	"journal.noted": "Dieser Browser hat sich Eintrag {seq} gemerkt und vergleicht das nächste Mal.",
	"journal.gone": "Der Eintrag, den sich dieser Browser gemerkt hat, wird nicht mehr aufbewahrt.",
	"journal.forget": "Eintrag {seq} vergessen und den letzten merken",
	"chain.whole": "Ein Eintrag hier gehasht: Die Kette ist heil.|{n} Einträge hier gehasht: Die Kette ist heil.",
	"chain.same": "Sie geht von Eintrag {seq} aus, den sich dieser Browser am {at} gemerkt hat.",
	"chain.far": "Eintrag {seq}, den sich dieser Browser am {at} gemerkt hat, liegt weiter zurück.",
	"chain.how": "Die Seite hasht die Kette selbst und zeigt, was sie gehasht hat. Dieser Browser merkt sich den "
		+ "letzten Eintrag und vergleicht das nächste Mal.",
	"chain.most": "Die Seite behält {n} Einträge. agentsite journal --verify hasht alle.",
	"chain.broken": "Die Kette ist gebrochen.",
	"chain.none": "Die Anlage gibt Eintrag {from} nicht so, wie er gehasht wird.",
	"chain.unread": "Eintrag {from} ist nicht lesbar.", "chain.place": "Wo Eintrag {from} stehen soll, steht ein anderer.",
	"chain.changed": "Die Einträge {from} bis {to} sind nicht die, auf denen der nächste aufbaut: Einer wurde geändert, "
		+ "entfernt, verschoben oder eingefügt.",
	"chain.cut": "Es endet mit Eintrag {from} und hatte {to}: Sein Ende wurde abgeschnitten.",
	"chain.noted": "Eintrag {from} ist nicht der, den dieser Browser kannte.",
};

export const s = texts<keyof typeof en>(lang === "de" ? de : en);
