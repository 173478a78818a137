package group

import (
	"regexp"
	"strings"
	"sync"
)

// templates are the sentences of a site of ours that a caller here acts on. Others do not
// come through: whoever wrote them writes for a model. In them, N is a number, T a length
// of time, P the address of a point and W a name.
var templates = []string{
	// Limits of an output.
	"at most T in T", "N moves in T", "keeps a value T", "rests T", "N in a second", "to safe too", "alone in W",
	"needs P on", "needs P off", "needs P W", "needs P within N..N",
	"expects P on in T", "expects P off in T", "expects P W in T", "expects P within N..N in T", "expects P from N in T",
	"expects P to N in T",
	// Why a reading is what it is.
	"no reading yet", "nothing has happened yet", "not known to be at its value yet",
	"the device has not been read for too long",
	// Why an output is at safe.
	"its lease was over", "its max_on was spent", "its duty was spent", "everything was sent to safe", "the site was not heard any more",
	"the hardware did not follow", "another output of its interlock was not known to be safe",
	"what it requires was not so", "the effect that it has to have did not come",
	"its owner: it had not its effect, and waits for agentsite reset",
	"its configuration was changed", "an emergency stop could not be read", "the site was started", "the process that drives it was started",
	"it cannot be read", "it was on", "it was off", "it was N", "it was W", "it had not been read for T", "it has not been read yet",
	"something that you may not see",
	// Why a call is refused.
	"P can be held for at most T at a time", "P keeps a value for min_on, T: ask for T or longer",
	"P keeps a value for min_on, T, but for its return to safe; try again in T",
	"P may stay away from safe for no more than T, and another value needs min_on, T; return it to safe first",
	"the site is stopping; outputs stay safe",
	"the emergency stop is latched: outputs stay safe until an owner runs agentsite reset",
	"P needs P on, and it was off; see to that first", "P needs P off, and it was on; see to that first",
	"P needs P within N..N, and it was N; see to that first",
	"P is interlocked with P, which is not known to be safe yet; try again later",
	"P is interlocked with P, which has not been safe for T; try again in T",
	"P is on its way to safe and rests there for T; try again later",
	"P rests at safe after its max_on or a start; try again in T",
	"P rests at safe for min_off, T, each time; try again in T",
	"P has been away from safe for its T in T; try again in T",
	"P has been moved N times in T, over all callers; try again in T",
	"P is a switch: say true or false", "P takes a number within N..N", "P takes N..N; N is outside",
	"for_seconds is N; say N to N", "your rate is used up: again in T",
	"this call came through this site before: sites ask each other in a ring here",
	"this call came through N sites and agents, and may through N: look for a ring of sites that ask each other",
	"this call came through N sites and agents, and goes through no more",
	// Why a task is not taken, or not changed.
	"W takes no arguments; leave them out", "arguments have to be a JSON object", "this key was used to ask for something else; use another one for each request",
	"a routine makes the steps that its owner wrote, and reads no text; ask without one", "too many tasks have not ended here: wait for one to end",
	"N tasks of yours, or of those who share your permission, have not ended: wait for one, or cancel it",
	"the task does not ask that now: it is W", "this task has ended; ask for another", "it is canceled before its next step; the one that is made now has not ended",
	"the owner said no", "you lack a permission for this", "you may set this to N..N and to nothing else",
	"your permission was revoked", "your permission was revoked; an owner can grant you another",
}

var templateForm = sync.OnceValue(func() *regexp.Regexp {
	var all []string
	for _, t := range templates {
		words := strings.Split(t, " ")
		for i, w := range words {
			words[i] = placeholder.Replace(regexp.QuoteMeta(w))
		}
		all = append(all, strings.Join(words, " "))
	}
	return regexp.MustCompile("^(?:" + strings.Join(all, "|") + ")$")
})

const (
	numberForm = `-?[0-9]{1,15}(?:\.[0-9]{1,9})?`
	timeForm   = `(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,6}(?:\.[0-9]{1,9})?(?:ms|s))?`
	pointForm  = `[a-z0-9_-]{1,24}/[a-z0-9_-]{1,24}`
)

// placeholder replaces the capital letters of templates, which are in no word of theirs.
var placeholder = strings.NewReplacer("N", numberForm, "T", timeForm, "P", pointForm, "W", `[a-z0-9_-]{1,24}`)

// known keeps a text of a site's where it is a sentence of ours, or several with
// semicolons between, and returns "" otherwise.
func known(text string) string {
	if len(text) > maxSentence {
		return ""
	}
	if form := templateForm(); !form.MatchString(text) {
		for part := range strings.SplitSeq(text, "; ") {
			if !form.MatchString(part) {
				return ""
			}
		}
	}
	return text
}
