package llm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// MaxLedger bounds what a ledger stores, in bytes.
const MaxLedger = 64 << 10

// maxReported bounds what a server can report of one request.
const maxReported = 1 << 28

// bytesPerToken estimates the tokens of a request where the server does not report them. bytesOfToken is
// above the average length of a token of any request.
const bytesPerToken, bytesOfToken = 3, 8

// micro is a millionth of a currency.
type micro int64

// Ledger records the tokens that the models of a site used. Before a request is sent, it records the most
// that the request may use, so that a crash loses nothing. It is safe for concurrent use.
type Ledger struct {
	now  func() (time.Time, bool)
	keep func([]byte) error

	writing sync.Mutex // one reservation at a time; taken before mu, which nobody holds over the disk
	mu      sync.Mutex
	damage  error // why nothing can be sent
	entries map[string]*entry
}

// entry counts the use of one agent in the present periods, and in earlier ones.
type entry struct {
	Day    int   `json:"day"` // since 1970, as the others, in UTC
	Tokens int   `json:"tokens"`
	Hour   int   `json:"hour"`
	Calls  int   `json:"calls"`
	Month  int   `json:"month"`
	Money  micro `json:"money"`

	// Other periods with what was used up in each alone; the one that was left last is at the end.
	Days   []spent `json:"days,omitzero"`
	Hours  []spent `json:"hours,omitzero"`
	Months []spent `json:"months,omitzero"`
}

// spent counts the use in one period.
type spent struct {
	At   int   `json:"at"`
	Used int64 `json:"used"`
}

// maxPeriods limits the other periods that are kept.
const maxPeriods = 6

// enter returns what is used up in the period now, after used in the one at. Where the clock was set
// back, it includes what was used in later periods, each once. So a clock that is wrong for a while gives no
// budget a second time, and ends none for good.
func enter(now int, at *int, used int64, others *[]spent) int64 {
	if now == *at {
		return used
	}
	later := func(all []spent, than int) (sum int64) {
		for _, s := range all {
			if s.At > than {
				sum += s.Used
			}
		}
		return sum
	}
	if n := len(*others); n > 0 && (*others)[n-1].At > *at { // at was entered by a clock that was set back
		used = max(0, used-later(*others, *at))
	}
	all := slices.DeleteFunc(slices.Clone(*others), func(s spent) bool { return s.At == *at || s.Used == 0 })
	if used > 0 || len(*others) > 0 {
		all = append(all[max(0, len(all)-maxPeriods+1):], spent{*at, used})
	}
	used = 0
	if now < *at {
		used = later(all, now)
	}
	for _, s := range all {
		if s.At == now {
			used += s.Used
		}
	}
	*at, *others = now, all
	return min(used, math.MaxInt32*1e6)
}

// ReadLedger reads what keep stored last; nil for nothing. Of a damaged one nothing can be sent.
func ReadLedger(stored []byte, now func() (time.Time, bool), keep func([]byte) error) (*Ledger, error) {
	l := &Ledger{now: now, keep: keep, entries: make(map[string]*entry)}
	if len(stored) > 0 {
		l.damage = json.Unmarshal(stored, &l.entries, json.RejectUnknownMembers(true))
	}
	if l.entries == nil {
		l.damage = errors.New("it is empty")
	}
	for name, e := range l.entries {
		if e == nil || slices.ContainsFunc(slices.Concat(e.Days, e.Hours, e.Months), func(s spent) bool { return s.Used < 0 }) || min(e.Day, e.Hour, e.Month, e.Tokens, e.Calls) < 0 || e.Money < 0 {
			l.damage = fmt.Errorf("%.40q is damaged", name)
		}
	}
	return l, l.damage
}

// current returns the entry of an agent at this time. The lock is held.
func (l *Ledger) current(name string) *entry {
	e := l.entries[name]
	if e == nil {
		e = &entry{}
		l.entries[name] = e
	}
	t, _ := l.now()
	hour := int(t.Unix() / 3600)
	e.Calls = int(min(enter(hour, &e.Hour, int64(e.Calls), &e.Hours), math.MaxInt32))
	e.Tokens = int(min(enter(hour/24, &e.Day, int64(e.Tokens), &e.Days), math.MaxInt32))
	year, month, _ := t.UTC().Date()
	e.Money = micro(enter(year*12+int(month), &e.Month, int64(e.Money), &e.Months))
	return e
}

// cost returns what tokens cost.
func (p *Price) cost(prompt, answer int) micro {
	return micro(p.Prompt*float64(prompt) + p.Answer*float64(answer) + 0.999)
}

// reservation is a request that is being made: what was taken for it, and when.
type reservation struct {
	ledger *Ledger
	agent  *Agent
	taken  entry
}

// reserve takes what a request may use at most, or refuses it where a limit would be passed.
func (l *Ledger) reserve(a *Agent, prompt, answer int) (*reservation, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unusable(); err != nil {
		return nil, err
	}
	e, lim, cost := l.current(a.name), &a.Limits, a.Model.Price.cost(prompt, answer)
	used := ""
	switch {
	case e.Tokens+prompt+answer > lim.Tokens:
		used = fmt.Sprintf("%d of %d tokens of today, and this may take %d more; tomorrow (UTC) it goes on, or with a higher limits.tokens_per_day", e.Tokens, lim.Tokens, prompt+answer)
	case e.Calls >= lim.Calls:
		used = fmt.Sprintf("%d calls in this hour; in the next one it goes on, or with a higher limits.calls_per_hour", e.Calls)
	case lim.Money > 0 && e.Money+cost > micro(lim.Money*1e6):
		used = fmt.Sprintf("%s, and this may cost %.4f; next month it goes on, or with a higher limits.money_per_month", e.money(lim), float64(cost)/1e6)
	}
	if used != "" {
		return nil, device.Faultf(device.Unavailable, "its budget is used up: %s", used)
	}
	r := &reservation{l, a, entry{Day: e.Day, Tokens: prompt + answer, Hour: e.Hour, Calls: 1, Month: e.Month, Money: cost}}
	r.add(prompt+answer, 1, cost)
	if err := l.store(); err != nil {
		r.add(-prompt-answer, -1, -cost)
		return nil, device.Faultf(device.Unavailable, "what it uses up cannot be written down, so that nothing is sent: %w", err)
	}
	return r, nil
}

// store writes all entries. The lock is held, and given up meanwhile.
func (l *Ledger) store() error {
	text, err := json.Marshal(l.entries, json.Deterministic(true))
	if err == nil && len(text) > MaxLedger {
		err = errors.New("there are too many agents")
	}
	if err == nil {
		l.mu.Unlock()
		err = l.keep(text)
		l.mu.Lock()
	}
	return err
}

// settle replaces what was taken by what the request used. A server that reports more than was asked
// for is believed. It is written down with the next request.
func (r *reservation) settle(u chat.Usage) {
	prompt, answer := min(max(0, u.Prompt), maxReported), min(max(0, u.Answer), maxReported)
	r.ledger.mu.Lock()
	r.add(prompt+answer-r.taken.Tokens, 0, r.agent.Model.Price.cost(prompt, answer)-r.taken.Money)
	r.ledger.mu.Unlock()
}

// add adds to what was used up in the times of the reservation. The lock is held.
func (r *reservation) add(tokens, calls int, cost micro) {
	e := r.ledger.current(r.agent.name)
	if e.Hour == r.taken.Hour {
		e.Calls += calls
	}
	if e.Day == r.taken.Day {
		e.Tokens += tokens
	}
	if e.Month == r.taken.Month {
		e.Money += cost
	}
}

// unusable returns why nothing can be sent.
func (l *Ledger) unusable() error {
	if l.damage == nil {
		return nil
	}
	return device.Faultf(device.Unavailable, "what was used up before is not known, so that nothing is sent to a model: %w", l.damage)
}

// money tells what was spent of a limit.
func (e *entry) money(lim *Limits) string {
	return fmt.Sprintf("%.2f of %.2f this month", float64(e.Money)/1e6, lim.Money)
}

// says tells what an agent has used up.
func (l *Ledger) says(a *Agent) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unusable(); err != nil {
		return "", err
	}
	e := l.current(a.name)
	text := fmt.Sprintf("%d of %d tokens today", e.Tokens, a.Limits.Tokens)
	if a.Limits.Money > 0 {
		text += ", " + e.money(&a.Limits)
	}
	return text, nil
}
