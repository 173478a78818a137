package group

import (
	"bytes"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxOffered bounds how many points a site may name for one operation, maxList how many
	// entries a list in an answer has, maxSentence a text that is looked at, and maxTime one that
	// is a time: RFC 3339 takes any number of digits. maxSchema bounds a schema of arguments.
	maxOffered  = 256
	maxList     = 1024
	maxSentence = 800
	maxSchema   = 4 << 10
	maxTime     = len(time.RFC3339Nano)
)

// otherSentence stands for what a site said in words of its own.
const otherSentence = "its site tells people more (agentsite --site)"

// The clean functions make answers of a site fit to be passed on. They report false for one
// without a valid address, of which nothing is passed on.

func cleanPoint(site string, p *agents.Point) bool {
	*p = agents.Point{
		Point: p.Point, Kind: device.Kind(matching(wordForm, string(p.Kind))), Unit: matching(unitForm, p.Unit), Device: matching(nameForm, strings.ToLower(p.Device)),
		Min: finite(p.Min), Max: finite(p.Max), Values: cleanNames(p.Values), Safe: cleanValue(p.Safe),
		MaxSeconds: number(p.MaxSeconds), Limits: ours(p.Limits), Confirm: matching(wordForm, p.Confirm),
	}
	return cleanAddress(site, &p.Point)
}

func cleanReading(site string, r *agents.Reading) bool {
	*r = agents.Reading{
		Point: r.Point, Value: cleanValue(r.Value), Unit: matching(unitForm, r.Unit), Time: cleanTime(r.Time), Age: number(r.Age),
		Quality: device.Quality(matching(wordForm, string(r.Quality))), Why: ours(r.Why),
		Effect: matching(effectForm, r.Effect), Detail: cleanDetail(r.Detail),
	}
	return cleanAddress(site, &r.Point)
}

func cleanDetail(d *agents.OutputDetail) *agents.OutputDetail {
	if d == nil {
		return nil
	}
	return &agents.OutputDetail{
		Safe: cleanValue(d.Safe), Max: number(d.Max), Limits: ours(d.Limits), Confirm: matching(wordForm, d.Confirm),
		OutputState: cleanState(d.OutputState), State: d.State, Others: d.Others,
		MaxOn: cleanAllowance(d.MaxOn), Duty: cleanAllowance(d.Duty), Set: cleanAged(d.Set), Measured: cleanAged(d.Measured),
	}
}

func cleanAllowance(a agents.Allowance) agents.Allowance {
	return agents.Allowance{Left: number(a.Left), Of: number(a.Of), Within: number(a.Within), Assumed: number(a.Assumed)}
}

func cleanState(o agents.OutputState) agents.OutputState {
	return agents.OutputState{
		Goal: cleanValue(o.Goal), Holder: matching(holderForm, o.Holder), Left: number(o.Left), Rest: number(o.Rest),
		Needs: ours(o.Needs), Fault: ours(o.Fault), Why: ours(o.Why), Effect: matching(effectForm, o.Effect),
		Latched: o.Latched,
	}
}

func cleanHistory(site string, h *agents.History) bool {
	*h = agents.History{
		Point: h.Point, Unit: matching(unitForm, h.Unit), Length: number(h.Length), Min: finite(h.Min), Mean: finite(h.Mean), Max: finite(h.Max), Cut: h.Cut,
		Steps: cleanList(site, h.Steps, func(_ string, s *agents.Step) bool {
			*s = agents.Step{Time: cleanTime(s.Time), Min: number(s.Min), Mean: number(s.Mean), Max: number(s.Max), Last: number(s.Last), Good: number(s.Good)}
			return true
		}),
		Changes: cleanList(site, h.Changes, cleanEvent),
	}
	return cleanAddress(site, &h.Point)
}

func cleanWhy(site string, w *agents.Why) bool {
	*w = agents.Why{
		Reading: w.Reading, Output: cleanDetail(w.Output), Via: cleanHolders(w.Via), Held: number(w.Held), Other: cleanValue(w.Other), Refused: ours(w.Refused),
		Kind: matching(wordForm, w.Kind), Until: number(w.Until), Holds: number(w.Holds),
		Changes: cleanList(site, w.Changes, cleanEvent),
		Needed:  cleanList(site, w.Needed, cleanAddress),
		Used:    cleanHolders(w.Used),
	}
	return cleanReading(site, &w.Reading)
}

func cleanEvent(_ string, e *agents.Event) bool {
	*e = agents.Event{
		Time: cleanTime(e.Time), Value: cleanValue(e.Value), Holder: matching(holderForm, e.Holder), Cause: ours(e.Cause),
		By: matching(holderForm, e.By), Via: cleanHolders(e.Via), Tool: matching(toolForm, e.Tool), Outcome: matching(wordForm, e.Outcome), Says: ours(e.Says), Times: max(0, e.Times),
	}
	return true
}

func cleanHolders(all []string) []string {
	return cleanList("", all, func(_ string, s *string) bool { return holderForm().MatchString(*s) })
}

func cleanOutput(site string, o *agents.Output) bool {
	*o = agents.Output{Output: o.Output, Value: cleanValue(o.Value), Goal: cleanValue(o.Goal), Safe: cleanValue(o.Safe), Left: number(o.Left), State: o.State, Effect: matching(effectForm, o.Effect)}
	return cleanAddress(site, &o.Output)
}

func cleanProof(site string, p *agents.Proof) bool {
	p.Asked, p.Set, p.Measured = cleanValue(p.Asked), cleanAged(p.Set), cleanAged(p.Measured)
	return cleanOutput(site, &p.Answer)
}

func cleanAged(a agents.Aged) agents.Aged {
	return agents.Aged{Value: cleanValue(a.Value), Age: number(a.Age)}
}

// cleanPicture keeps a picture, if it is one by its first bytes.
func cleanPicture(site string, p *agents.Picture) bool {
	p.Time, p.Size = cleanTime(p.Time), len(p.Data)
	return cleanAddress(site, &p.Camera) && isPicture(p.MIME, p.Data)
}

// cleanStatus also gives the status the site's name in the group, whatever it calls itself.
func cleanStatus(site string, s agents.Status) agents.Status {
	return agents.Status{
		Site: site, Version: matching(releaseForm, s.Version), Uptime: number(s.Uptime), Simulated: s.Simulated, Stopped: s.Stopped,
		Devices: cleanList(site, s.Devices, func(_ string, d *agents.DeviceStatus) bool {
			*d = agents.DeviceStatus{Device: matching(nameForm, d.Device), Model: matching(nameForm, strings.ToLower(d.Model)), Faults: cleanList(site, d.Faults, cleanTrouble)}
			return d.Device != ""
		}),
		Moved: cleanList(site, s.Moved, cleanOutputStatus), Blocked: cleanList(site, s.Blocked, cleanOutputStatus),
	}
}

func cleanOutputStatus(site string, o *agents.OutputStatus) bool {
	*o = agents.OutputStatus{Output: o.Output, Value: cleanValue(o.Value), OutputState: cleanState(o.OutputState)}
	return cleanAddress(site, &o.Output)
}

// cleanApproval keeps a call that waits, without its caller and arguments: they are for the
// owner, who has them from the site itself.
func cleanApproval(_ string, a *agents.Approval) bool {
	*a = agents.Approval{
		Handle: matching(handleForm, a.Handle), Tool: matching(toolForm, a.Tool), Left: number(a.Left), Holds: number(a.Holds),
	}
	return a.Handle != ""
}

func cleanAgent(site string, a *task.Agent) bool {
	*a = task.Agent{Name: matching(nameForm, a.Name), Skills: cleanList(site, slices.Clone(a.Skills), func(_ string, s *task.Skill) bool {
		*s = task.Skill{ID: matching(nameForm, s.ID), Input: cleanSchema(s.Input), Seconds: number(s.Seconds)}
		return s.ID != ""
	})}
	return a.Name != ""
}

// cleanTask keeps a task's question and its result, which its asker has asked for. The lists of t stay as
// they are: a host in this process may have them, too.
func cleanTask(site string, t *task.Task) bool {
	there, agent := t.ID, t.Agent
	*t = task.Task{
		ID: site + "/" + there, Agent: site + "/" + agent, Skill: matching(nameForm, t.Skill), State: task.State(matching(wordForm, string(t.State))),
		Says: ours(t.Says), Asker: matching(holderForm, t.Asker), Created: cleanTime(t.Created), Changed: cleanTime(t.Changed), Question: t.Question, Result: t.Result,
		Fault: matching(wordForm, t.Fault), Steps: cleanList(site, slices.Clone(t.Steps), func(_ string, s *task.Step) bool {
			*s = task.Step{Does: ours(s.Does), Time: cleanTime(s.Time), Outcome: matching(wordForm, s.Outcome), Says: ours(s.Says)}
			return true
		}),
	}
	if !t.Result.IsValid() {
		t.Result = nil
	}
	if q := t.Question; q != nil {
		t.Question = &task.Question{ID: matching(nameForm, q.ID), Text: readable(q.Text), Options: cleanList("", slices.Clone(q.Options), func(_ string, o *string) bool {
			*o = readable(*o)
			return true
		})}
	}
	return taskForm().MatchString(there) && nameForm().MatchString(agent) && (t.State != task.InputRequired || t.Question != nil && t.Question.ID != "")
}

// cleanSchema keeps a schema all of whose texts are names.
func cleanSchema(v jsontext.Value) jsontext.Value {
	for d := jsontext.NewDecoder(bytes.NewReader(v)); len(v) <= maxSchema; {
		switch t, err := d.ReadToken(); {
		case err == io.EOF:
			return v
		case err != nil || t.Kind() == '"' && !fieldForm().MatchString(t.String()):
			return nil
		}
	}
	return nil
}

// cleanOffer keeps the addresses that match the name pattern, each once. Descriptions are
// texts of the site's owner, for people.
func cleanOffer(o *agents.Offer) *agents.Offer {
	out := new(agents.Offer)
	for _, t := range op.Tools {
		if t.Whole != nil {
			*t.Whole(out) = *t.Whole(o)
		}
		if t.Points == nil {
			continue
		}
		for _, a := range *t.Points(o) {
			if to := t.Points(out); len(*to) < maxOffered && isAddress(a) && !slices.Contains(*to, a) {
				*to = append(*to, a)
			}
		}
	}
	return out
}

// cleanTrouble cleans what is wrong with a point: its name, a quality, and a sentence.
func cleanTrouble(_ string, text *string) bool {
	of := troubleForm().FindStringSubmatch((*text)[:min(len(*text), maxSentence)])
	if of == nil {
		*text = ours(*text)
	} else {
		*text = strings.TrimSpace(of[1] + " " + ours(of[2]))
	}
	return true
}

// cleanList cleans what a list has, and bounds it. nil stays nil.
func cleanList[T any](site string, all []T, clean func(site string, one *T) bool) []T {
	kept := all[:0]
	for i := range all {
		if len(kept) < maxList && clean(site, &all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

func cleanNames(all []string) []string {
	return cleanList("", all, func(_ string, s *string) bool { return nameForm().MatchString(*s) })
}

// cleanAddress makes the address of a point there that of the point here.
func cleanAddress(site string, address *string) bool {
	there := *address
	*address = site + "/" + there
	return isAddress(there)
}

func isAddress(text string) bool {
	d, p, ok := device.SplitAddress(text)
	return ok && device.CheckName(d) == nil && device.CheckName(p) == nil
}

// cleanValue keeps a number, a bool, or one of a state's words.
func cleanValue(v device.Value) device.Value {
	if !v.Finite() || v.Type() == device.TypeText && !nameForm().MatchString(v.Text()) {
		return device.Value{}
	}
	return v
}

func cleanTime(text string) string {
	if _, err := time.Parse(time.RFC3339, text); err != nil || len(text) > maxTime {
		return ""
	}
	return text
}

// number returns n, or 0 for what is no number: CBOR can carry it, and JSON cannot.
func number(n float64) float64 {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

func finite(n *float64) *float64 {
	if n == nil || number(*n) != *n {
		return nil
	}
	return n
}

// ours returns a site's sentence as it may be passed on; "" stays "".
func ours(text string) string {
	if text == "" || known(text) != "" {
		return text
	}
	return otherSentence
}

// readable returns a text that people read, without what is not seen.
func readable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, device.Clip(text, maxSentence))
}

func matching(form func() *regexp.Regexp, text string) string {
	if form().MatchString(text) {
		return text
	}
	return ""
}

// Forms of texts that are passed on. They are compiled when they are first used.
var (
	nameForm   = form(`[a-z0-9_-]{1,24}`)
	wordForm   = form(`[a-z_]{1,24}`)
	toolForm   = form(`[a-z0-9_]{1,40}`)
	effectForm = form(`(confirmed|not confirmed|failed)`)
	unitForm   = form(`[!-~]{1,24}`) // UCUM
	// As crypto/rand.Text makes them.
	handleForm = form(`[A-Z2-7]{26}`)
	taskForm   = form(`[A-Za-z0-9_-]{1,64}`)
	fieldForm  = form(`[A-Za-z0-9_$-]{1,40}`) // of a schema: its words, and names of arguments
	// As device.Fault has them, and agents.Principal.
	troubleForm = form(`([a-z0-9_-]{1,24}: (?:good|bad|stale|fault))(?: (.*))?`)
	holderForm  = form(`(somebody else|did:key:z[1-9A-HJ-NP-Za-km-z]{40,60}|[a-z0-9_-]{1,24}(:[a-z0-9_-]{1,24})?)`)
	releaseForm = form(`(dev|v?[0-9]{1,5}(\.[0-9]{1,5}){0,2}(-(dev|alpha|beta|rc)?[.-]?[0-9]{0,5}(-g[0-9a-f]{7,12})?)?)`)
)

func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + pattern + `$`) })
}
