// The words of the further views, in English and German.

export const viewsEn = {
	"exactly": "Exactly what is asked", "look": "Look at it", 
	"deny": "Deny", "allow": "Allow", "done": "done",
	"for": "for {time}",
	"owner.only": "Only an owner of the site sees this. An owner opens the page with",

	"act.exactly": "It asks for exactly this:",
	"act.failed": "Not done: {what}.", "act.done": "Done: {what}.",

	"nav.waiting": "Waiting", "nav.talk": "Talk", "nav.tasks": "Tasks", "nav.rules": "Rules", "nav.journal": "Journal", "nav.access": "Access",
	"nav.board": "Board", 

	"who.site": "the site", "who.you": "you", "who.local": "this computer", "who.rule": "the rule {name}", "who.for": "for {who}",

	"call.move": "A move", "call.release": "back to safe", "call.stop": "Emergency stop", "call.ask": "asks {agent}:", "call.approve": "Allowed",
	"call.deny": "Denied", "call.reset": "Ended the emergency stop", "call.reload": "Read the configuration again",
	"call.takeover": "Took over", "call.grant": "Gave access:", "call.revoke": "Revoked", "call.pause": "Paused",
	"call.resume": "Resumed", "call.clock": "Set the clock",

	"outcome.invalid": "not valid", "outcome.denied": "not allowed", "outcome.unsafe": "not possible then", "outcome.busy": "in use",
	"outcome.offline": "no contact", "outcome.expired": "too late", "outcome.unknown_outcome": "not sure", "outcome.unavailable": "not available",
	"outcome.internal": "failed",

	"waiting.title": "Waiting for you", "waiting.now": "Now", "waiting.asks": "asks:", "waiting.left": "left to answer",
	"waiting.less": "Only {time} of this can run now.", "waiting.holds": "It would run for {time}.",
	"waiting.draft": "A draft waits:", "waiting.draft.nothing": "does nothing until you accept it",
	"waiting.rest": "What needs your word is shown here as it comes.", "waiting.answered": "Answered", "waiting.allowed": "Allowed", "waiting.denied": "Denied",

	"tasks.live": "Under way", "tasks.past": "Ended", "tasks.none": "No task is known.", "tasks.past.note": "Ended tasks are kept for 7 days. You see your own; an owner sees all.",
	"tasks.asks": "asks:", "tasks.asker": "asked by", "tasks.answer": "Answer", "tasks.cancel": "Cancel the task", "tasks.runs": "runs",
	"tasks.submitted": "Waits its turn", "tasks.working": "Works", "tasks.input_required": "Asks", "tasks.auth_required": "Waits for an owner",
	"tasks.completed": "Done", "tasks.failed": "Failed", "tasks.rejected": "Refused", "tasks.canceled": "Canceled",

	"agent.idle": "Idle", "agent.waits": "Waits", "agent.holds": "Holds", "agent.yields": "Gives way", "agent.paused": "Paused",
	"agent.draft": "Draft", "agent.failed": "Cannot run", "agent.runs": "Runs",
	"agent.pause": "Pause", "agent.resume": "Resume", "agent.none": "No agent that you may ask.", "agent.may": "What {name} may do",
	"agent.talk": "Talk", "agent.ask": "Ask it to run", "agent.asked": "Asked: see its task",

	"talk.with": "Conversation with {agent}", "talk.you": "You:", "talk.message": "Message to {agent}", "talk.placeholder": "Ask or tell {agent}",
	"talk.send": "Send", "talk.anew": "Begin a new conversation", "talk.empty": "Nothing is said yet. What it does is shown here, and recorded by the site.",
	"talk.works": "It works on it.", "talk.owner": "A move waits for an owner of the site.", "talk.record": "Record of {site}", "talk.record.by": "written by the site",
	"talk.nothing": "Nothing done", "talk.nothing.says": "No act is on record. What {agent} writes is only text.",
	"talk.foreign": "It had read a text that others wrote:",
	"talk.is": "It is", "talk.may": "May", "talk.never": "Never", "talk.never.says": "approve, change limits, end the stop", "talk.now": "Now",

	"rules.drafts": "A rule waits for you", "rules.none": "This site has no rules.",
	"rules.reads": "Reads", "rules.moves": "Moves", "rules.may": "May", "rules.author": "Written by", "rules.written": "As it is written",
	"rules.try": "Try on the past", "rules.past": "See it on the past", "rules.log": "What it did", "rules.log.none": "Nothing is on record.",
	"rules.draft.first": "See it on the past first; then you can accept it.", "rules.draft.may": "What it may do, in your words",
	"rules.wish": "Its author wishes that it may", "rules.accept": "Accept", "rules.discard": "Discard",

	"trial.title": "Tried on the past", "trial.would": "Would have moved", "trial.n": "time|times", "trial.for": "On for", "trial.refused": "Refused",
	"trial.strip": "{name} as it would be", "trial.was": "{name} as it was", "trial.chart": "{name}: as it would have been, and as it was",
	"trial.happened": "It was away from safe once, for {time}.|It was away from safe {n} times, for {time}.", "trial.each": "Each move",
	"trial.unknown": "For {time} of this nothing is stored.", "trial.readings": "From {n} stored readings.",
	"trial.past": "The past does not react: a heater that would have run has not warmed it.",

	"journal.filter": "Filter", "journal.all": "All", "journal.moves": "Moves", "journal.refused": "Refused", "journal.owner": "Owner",
	"journal.output": "Output", "journal.who": "Who", "journal.any": "any", "journal.empty": "No entry like that.", "journal.older": "Older",
	"journal.noResult": "no result", "journal.verified": "verified by the site: unchanged, {first} to {last}",
	"journal.same": "It is still the journal that this browser knew: entry {seq}, noted {at}.",
	"journal.noted": "This browser has noted entry {seq}, and compares it next time.",
	"journal.damaged": "The journal could not be read or verified.", "journal.other": "This is not the journal that this browser knew.",
	"journal.gone": "The entry that this browser noted is not kept any more.",
	"journal.forget": "Forget entry {seq}, and note the last one",
	"journal.how": "The site verifies its chain at each look. The page cannot: the entries come without the bytes that are hashed. This browser notes the number and hash of the last entry, and compares.",

	"why.holds": "holds it", "why.since": "for {time}", "why.nobody": "Nobody holds it. It is at its safe value.",
	"why.going": "It is on its way to {value}.", "why.returned": "It went back because", "why.needs": "It needs",
	"why.refused": "It cannot be {value} now:", "why.can": "It can be {value} now.", "why.safe": "Safe", "why.max": "At once at most",
	"why.max.none": "no limit", "why.limits": "Limits", "why.confirm": "Asks", "why.confirm.owner": "an owner, each time",
	"why.used": "Used by", "why.required": "Has to be right for",

	"access.owners": "Owners", "access.owner": "An owner", "access.you": "You", "access.windows": "Windows of this page", "access.window": "A window", "access.own": "This window",
	"access.idle": "used {time} ago, signed in for {age}", "access.out": "Sign out", "access.owner.may": "Everything, from anywhere.", "access.unowned": "Nobody owns this site yet.",
	"access.tokens": "Apps and programs", "access.keys": "People and agents", "access.none": "Nobody else has access.",
	"access.noEnd": "no end", "access.until": "until", "access.ended": "ended", "access.hours": "{n} h", "access.days": "{n} days",
	"access.all": "All of these have to allow a call.", "access.revoke": "Revoke", "access.keep": "Keep it",
	"access.sure": "It is out at once, and what it holds goes back to safe.",
	"access.clock": "The site’s clock is not set: permissions that end move nothing until it is. On its own machine:",
	"access.add": "Give access", "access.add.says": "A permission is signed with your key, in your terminal:", "access.key": "Key of the site",

	"board.wrong": "Not well", "board.devices": "Devices", "board.well": "well", "board.fault": "fault", "board.program": "Program",
	"board.version": "Version", "board.uptime": "Running for", "board.kind": "Kind", "board.simulated": "simulated: nothing real moves",
	"board.configuration": "Configuration", "board.demo": "It runs without a file, as a demonstration.", "board.text": "Its text",
	"board.reload": "Read it again", "board.listens": "What listens", "board.public": "Answers everybody:", "board.routes": "Answers those with a permission:",
	"board.socket": "Only for programs on the site’s own machine.",
} as const;

export const viewsDe: Record<keyof typeof viewsEn, string> = {
	"exactly": "Genau das wird erbeten", "look": "Ansehen", 
	"deny": "Ablehnen", "allow": "Erlauben", "done": "erledigt",
	"for": "für {time}",
	"owner.only": "Das sieht nur, wem die Anlage gehört. Die Seite öffnet man dann mit",

	"act.exactly": "Es fragt genau das:",
	"act.failed": "Nicht geschehen: {what}.", "act.done": "Erledigt: {what}.",

	"nav.waiting": "Wartet", "nav.talk": "Reden", "nav.tasks": "Aufträge", "nav.rules": "Regeln", "nav.journal": "Protokoll", "nav.access": "Zugang",
	"nav.board": "Platine", 

	"who.site": "die Anlage", "who.you": "du", "who.local": "dieser Rechner", "who.rule": "die Regel {name}", "who.for": "Auftrag: {who}",

	"call.move": "Eine Bewegung", "call.release": "in sichere Stellung", "call.stop": "Stopp", "call.ask": "bittet {agent}:", "call.approve": "Erlaubt:",
	"call.deny": "Abgelehnt:", "call.reset": "Stopp beendet", "call.reload": "Konfiguration neu gelesen",
	"call.takeover": "Übernommen:", "call.grant": "Zugang gegeben:", "call.revoke": "Entzogen:", "call.pause": "Angehalten:",
	"call.resume": "Fortgesetzt:", "call.clock": "Uhr gestellt",

	"outcome.invalid": "ungültig", "outcome.denied": "nicht erlaubt", "outcome.unsafe": "ging da nicht", "outcome.busy": "belegt",
	"outcome.offline": "kein Kontakt", "outcome.expired": "zu spät", "outcome.unknown_outcome": "nicht sicher", "outcome.unavailable": "nicht verfügbar",
	"outcome.internal": "gescheitert",

	"waiting.title": "Wartet auf dich", "waiting.now": "Jetzt", "waiting.asks": "bittet:", "waiting.left": "Zeit zu antworten",
	"waiting.less": "Davon gehen jetzt nur {time}.", "waiting.holds": "Das würde {time} laufen.",
	"waiting.draft": "Ein Entwurf wartet:", "waiting.draft.nothing": "tut nichts, bis du ihn annimmst",
	"waiting.rest": "Was dein Wort braucht, steht hier, sobald es kommt.", "waiting.answered": "Beantwortet", "waiting.allowed": "Erlaubt", "waiting.denied": "Abgelehnt",

	"tasks.live": "Im Gang", "tasks.past": "Beendet", "tasks.none": "Kein Auftrag bekannt.", "tasks.past.note": "Beendete Aufträge bleiben 7 Tage. Du siehst deine eigenen; wem die Anlage gehört, sieht alle.",
	"tasks.asks": "fragt:", "tasks.asker": "erbeten von", "tasks.answer": "Antworten", "tasks.cancel": "Auftrag abbrechen", "tasks.runs": "läuft",
	"tasks.submitted": "Kommt noch dran", "tasks.working": "Arbeitet", "tasks.input_required": "Fragt", "tasks.auth_required": "Wartet auf Erlaubnis",
	"tasks.completed": "Erledigt", "tasks.failed": "Gescheitert", "tasks.rejected": "Abgelehnt", "tasks.canceled": "Abgebrochen",

	"agent.idle": "Ruht", "agent.waits": "Wartet", "agent.holds": "Hält", "agent.yields": "Lässt den Vortritt", "agent.paused": "Angehalten",
	"agent.draft": "Entwurf", "agent.failed": "Läuft nicht", "agent.runs": "Läuft",
	"agent.pause": "Anhalten", "agent.resume": "Fortsetzen", "agent.none": "Kein Agent, den du bitten darfst.", "agent.may": "Was {name} darf",
	"agent.talk": "Reden", "agent.ask": "Laufen lassen", "agent.asked": "Erbeten: zum Auftrag",

	"talk.with": "Gespräch mit {agent}", "talk.you": "Du:", "talk.message": "Nachricht an {agent}", "talk.placeholder": "Frag oder sag {agent} etwas",
	"talk.send": "Senden", "talk.anew": "Neues Gespräch beginnen", "talk.empty": "Noch ist nichts gesagt. Was er tut, steht dann hier, und die Anlage zeichnet es auf.",
	"talk.works": "Arbeitet daran.", "talk.owner": "Eine Bewegung wartet auf die Erlaubnis dessen, dem die Anlage gehört.", "talk.record": "Aufzeichnung von {site}", "talk.record.by": "von der Anlage geschrieben",
	"talk.nothing": "Nichts getan", "talk.nothing.says": "Nichts ist aufgezeichnet. Was {agent} schreibt, ist nur Text.",
	"talk.foreign": "Vorher hatte er einen Text von anderen gelesen:",
	"talk.is": "Ist", "talk.may": "Darf", "talk.never": "Nie", "talk.never.says": "erlauben, Grenzen ändern, den Stopp beenden", "talk.now": "Jetzt",

	"rules.drafts": "Eine Regel wartet auf dich", "rules.none": "Diese Anlage hat keine Regeln.",
	"rules.reads": "Liest", "rules.moves": "Stellt", "rules.may": "Darf", "rules.author": "Geschrieben von", "rules.written": "So ist sie geschrieben",
	"rules.try": "An der Vergangenheit proben", "rules.past": "An der Vergangenheit ansehen", "rules.log": "Was sie getan hat", "rules.log.none": "Nichts ist aufgezeichnet.",
	"rules.draft.first": "Sieh sie dir erst an der Vergangenheit an; dann kannst du sie annehmen.", "rules.draft.may": "Was sie darf, in deinen Worten",
	"rules.wish": "Gewünscht wird, dass sie darf", "rules.accept": "Annehmen", "rules.discard": "Verwerfen",

	"trial.title": "An der Vergangenheit geprobt", "trial.would": "Hätte gestellt", "trial.n": "mal", "trial.for": "An für", "trial.refused": "Abgelehnt",
	"trial.strip": "{name}, wie es wäre", "trial.was": "{name}, wie es war", "trial.chart": "{name}: wie es gewesen wäre, und wie es war",
	"trial.happened": "Einmal nicht in sicherer Stellung, für {time}.|{n}-mal nicht in sicherer Stellung, für {time}.", "trial.each": "Jede Bewegung",
	"trial.unknown": "Für {time} davon ist nichts gespeichert.", "trial.readings": "Aus {n} gespeicherten Messwerten.",
	"trial.past": "Die Vergangenheit antwortet nicht: eine Heizung, die gelaufen wäre, hat sie nicht gewärmt.",

	"journal.filter": "Auswahl", "journal.all": "Alle", "journal.moves": "Gestellt", "journal.refused": "Abgelehnt", "journal.owner": "Besitz",
	"journal.output": "Ausgang", "journal.who": "Wer", "journal.any": "alle", "journal.empty": "Kein solcher Eintrag.", "journal.older": "Ältere",
	"journal.noResult": "kein Ergebnis", "journal.verified": "von der Anlage geprüft: unverändert, {first} bis {last}",
	"journal.same": "Es ist noch das Protokoll, das dieser Browser kannte: Eintrag {seq}, gemerkt am {at}.",
	"journal.noted": "Dieser Browser hat sich Eintrag {seq} gemerkt und vergleicht das nächste Mal.",
	"journal.damaged": "Das Protokoll war nicht zu lesen oder zu prüfen.", "journal.other": "Das ist nicht das Protokoll, das dieser Browser kannte.",
	"journal.gone": "Der Eintrag, den sich dieser Browser gemerkt hat, wird nicht mehr aufbewahrt.",
	"journal.forget": "Eintrag {seq} vergessen und den letzten merken",
	"journal.how": "Die Anlage prüft ihre Kette bei jedem Blick. Die Seite kann es nicht: die Einträge kommen ohne die Bytes, aus denen der Hash entsteht. Dieser Browser merkt sich Nummer und Hash des letzten Eintrags und vergleicht.",

	"why.holds": "hält ihn", "why.since": "seit {time}", "why.nobody": "Niemand hält ihn. Er ist in sicherer Stellung.",
	"why.going": "Unterwegs nach {value}.", "why.returned": "Zurückgegangen, weil", "why.needs": "Braucht",
	"why.refused": "Kann jetzt nicht {value} werden:", "why.can": "Kann jetzt {value} werden.", "why.safe": "Sicher", "why.max": "Am Stück höchstens",
	"why.max.none": "ohne Grenze", "why.limits": "Grenzen", "why.confirm": "Fragt", "why.confirm.owner": "jedes Mal, wem die Anlage gehört",
	"why.used": "Benutzt von", "why.required": "Muss stimmen für",

	"access.owners": "Wem sie gehört", "access.owner": "Besitzt die Anlage", "access.you": "Du", "access.windows": "Fenster dieser Seite", "access.window": "Ein Fenster", "access.own": "Dieses Fenster",
	"access.idle": "zuletzt vor {time} benutzt, angemeldet seit {age}", "access.out": "Abmelden", "access.owner.may": "Alles, von überall.", "access.unowned": "Diese Anlage gehört noch niemandem.",
	"access.tokens": "Apps und Programme", "access.keys": "Menschen und Agenten", "access.none": "Sonst hat niemand Zugang.",
	"access.noEnd": "ohne Ende", "access.until": "bis", "access.ended": "beendet", "access.hours": "{n} h", "access.days": "{n} Tage",
	"access.all": "Alle davon müssen einen Aufruf erlauben.", "access.revoke": "Entziehen", "access.keep": "Behalten",
	"access.sure": "Sofort ist er draußen, und was er hält, geht in sichere Stellung.",
	"access.clock": "Die Uhr der Anlage ist nicht gestellt: Zugänge mit einem Ende stellen so lange nichts. Auf ihrem eigenen Rechner:",
	"access.add": "Zugang geben", "access.add.says": "Ein Zugang wird mit deinem Schlüssel unterschrieben, in deinem Terminal:", "access.key": "Schlüssel der Anlage",

	"board.wrong": "Nicht in Ordnung", "board.devices": "Geräte", "board.well": "in Ordnung", "board.fault": "gestört", "board.program": "Programm",
	"board.version": "Version", "board.uptime": "Läuft seit", "board.kind": "Art", "board.simulated": "simuliert: nichts Echtes bewegt sich",
	"board.configuration": "Konfiguration", "board.demo": "Sie läuft ohne Datei, als Vorführung.", "board.text": "Ihr Text",
	"board.reload": "Neu lesen", "board.listens": "Was zuhört", "board.public": "Antwortet allen:", "board.routes": "Antwortet denen, die es dürfen:",
	"board.socket": "Nur für Programme auf dem Rechner der Anlage.",
};
