// The words of the frame and of the first views, in German.

import type { en } from "./words-en";

export const de: Record<keyof typeof en, string> = {
	"unit.s": "s", "unit.min": "min", "unit.h": "h", "unit.d": "d",
	"on": "an", "off": "aus", "and": "und",
	"house": "Haus", "more": "Mehr", "site": "Anlage", "sites": "Anlagen", "allSites": "alle {n} Anlagen", "views": "Ansichten", "skip": "Zum Inhalt",
	"back": "Zurück", "live": "Aktuell", "connecting": "Verbinde…", "noContact": "Kein Kontakt", "noContactFor": "Kein Kontakt, {s} s",
	"contactLost": "Kein Kontakt seit {s} s.",
	"contactLostMore": "Du siehst, was um {time} bekannt war. Schalten geht nicht; Ausgänge gehen von selbst in sichere Stellung, wenn ihre Zeit endet. Der Stopp wird trotzdem gesendet.",
	"stop": "Stopp", "stopped": "Gestoppt", "stopAgain": "nochmal senden", "emergencyStop": "Stopp", "stopSent": "Stopp gesendet",
	"emergencyStopAt": "Stopp, {time}", "stopSafe": "{a} von {b} sicher", "stopHow": "Antwort nach {s}", "stopProof": "verlangt · geschrieben · gemessen, {s}",
	"stopAsked": "einmal verlangt, seit {s}|{n}-mal verlangt, seit {s}", "stopNoAnswer": "Keine Antwort", "stopByHand": "Schalte sie von Hand aus.",
	"stopRefused": "Abgelehnt: Du darfst diese Anlage nicht stoppen.", "stopWaits": "Gesendet",
	"stopLatched": "Nichts bewegt sich, bis jemand, dem die Anlage gehört, den Stopp beendet.", "endStop": "Stopp beenden…", "endStopAsk": "Den Stopp beenden?",
	"endStopMore": "Ausgänge bleiben sicher und können wieder geschaltet werden. Regeln machen weiter, wenn ihre Bedingung neu beginnt.", "endStopDo": "Beenden",
	"endStopKeep": "Stopp behalten", "stopOver": "Der Stopp ist beendet. Ausgänge bleiben sicher und können wieder geschaltet werden.", "endStopWho": "Das beendet, wem die Anlage gehört.",
	"confirmInTerminal": "Bestätige im Terminal, in dem agentsite open läuft.",
	"close": "Schließen", "cancel": "Abbrechen", "keys": "Tasten",
	"keyStop": "Stopp (⌘ . am Mac)", "keyChart": "Im Diagramm: der Zeiger", "keyHold": "Auf einer Halte-Taste: fragt in Worten", "keyEsc": "Schließt; schaltet nie etwas",
	"keyThese": "Diese Tasten", "singleKeys": "Einzelne Tasten führen zu Ansichten",
	"out": "Dieses Fenster ist abgemeldet", "outMore": "Öffne es aus dem Terminal, auf dem Gerät mit deinem Schlüssel:",
	"outStop": "Der Stopp braucht ein angemeldetes Fenster oder den Befehl agentsite stop.", "outUsed": "Dieser Link wurde schon benutzt oder ist zu alt",
	"unreachable": "Das Programm antwortet nicht", "unreachableMore": "Dieses Fenster bekommt keine Antwort von dort, wo es herkam. Läuft das Programm noch?", "again": "Nochmal versuchen",
	"broken": "Dieser Teil der Seite ist gescheitert", "brokenMore": "Die Anlage ist nicht betroffen, der Stopp auch nicht.", "showAgain": "Nochmal zeigen",
	"noSites": "Noch keine Anlage", "noSitesMore": "Dieses Fenster kennt keine Anlage.",
	"leftThen": "noch, dann {to}", "faulty": "gestört",
	"loading": "Frage {name}…",
	"fault.invalid": "Das war nicht richtig gefragt.", "fault.denied": "Das darfst du nicht.", "fault.unsafe": "Geht jetzt nicht.",
	"fault.busy": "Jemand anderes hat es, oder eine Grenze ist erreicht.", "fault.offline": "Keine Antwort.", "fault.expired": "Es kam zu spät; nichts wurde geschaltet.",
	"fault.unknown_outcome": "Nicht sicher. Die Antwort ging verloren. Es wird nicht von selbst nochmal gesendet.", "fault.unavailable": "Gerade nicht.",
	"fault.internal": "In der Anlage ging etwas schief.", "fault.out": "Dieses Fenster ist abgemeldet.", "fault.missing": "Das kann nur, wem die Anlage gehört.",
};
