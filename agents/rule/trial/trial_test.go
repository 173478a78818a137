package trial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/device/guard"
)

const (
	heater      = "house/heater"
	temperature = "house/temperature"
	tank        = "house/tank"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// stream is a past by address.
type stream []struct {
	point string
	at    time.Duration
	value device.Value
	every time.Duration
}

func (s stream) Readings(points []string, from, to time.Time, yield func(int, time.Time, device.Value, time.Duration) bool) {
	for _, r := range s {
		for i, p := range points {
			if at := start.Add(r.at); p == r.point && !at.Before(from) && at.Before(to) {
				if !yield(i, at, r.value, r.every) {
					return
				}
			}
		}
	}
}

// read appends readings of a point each so often between two times.
func (s stream) read(point string, v device.Value, from, to, each time.Duration) stream {
	for at := from; at < to; at += each {
		s = append(s, stream{{point, at, v, 0}}...)
	}
	return s
}

func house(past trial.Source, length time.Duration, rules ...trial.Rule) trial.Options {
	return trial.Options{
		From: start, To: start.Add(length), Source: past, Rules: rules,
		Points:   []agents.Point{switchPoint(heater), {Point: temperature, Kind: device.KindMeasurement, Unit: "Cel"}, {Point: tank, Kind: device.KindMeasurement, Unit: "%"}},
		Policies: []guard.Policy{switchPolicy(heater)},
		GoodFor:  func(string) time.Duration { return 30 * time.Second },
	}
}

func named(name string, rank int, edit func(*rule.Rule)) trial.Rule {
	return trial.Rule{Name: name, Self: "rule:" + name, Rank: rank, Rule: newRule(edit)}
}

var frost = named("frost", 1, func(r *rule.Rule) {
	r.When, r.Hold = temperature+" < 5 Cel", map[string]device.Value{heater: on}
})

// moves writes the moves of a result in a few words.
func moves(r trial.Result) string {
	var all []string
	for _, m := range r.Moves {
		all = append(all, fmt.Sprintf("%v %v %s", m.Time.Sub(start).Round(time.Second), m.Value, m.Rule))
	}
	return strings.Join(all, ", ")
}

func degrees(c float64) device.Value { return device.Number(c) }

// TestTrials: what rules would have done, and what the guard would have refused.
func TestTrials(t *testing.T) {
	every := named("every", 1, func(r *rule.Rule) {
		r.Every, r.Do = time.Minute, []rule.Step{{Set: map[string]device.Value{heater: on}, For: 30 * time.Second}}
	})
	warm := named("warm", 2, func(r *rule.Rule) {
		r.When, r.Hold = temperature+" < 3 Cel", map[string]device.Value{heater: on}
	})
	cold := stream{}.read(temperature, degrees(4), 20*time.Second, 25*time.Minute, 10*time.Second)
	for _, tt := range []struct {
		name    string
		past    stream
		length  time.Duration
		rules   []trial.Rule
		policy  func(*guard.Policy)
		moves   string
		seconds float64
		refused string
	}{
		{
			name: "max_on ends a hold, and the output rests", past: cold, length: 15 * time.Minute, rules: []trial.Rule{frost},
			moves: "20s on frost, 10m20s off frost, 10m30s on frost", seconds: 869.95,
		},
		{
			name: "max_on refuses who asks while it rests", length: 11 * time.Minute, rules: []trial.Rule{every},
			policy:  func(p *guard.Policy) { p.MaxOn, p.Rest, p.MinOff = 30*time.Second, 3*time.Minute, 3*time.Minute },
			moves:   "3m0s on every, 3m30s off every, 7m0s on every, 7m30s off every",
			seconds: 60, refused: "house/heater rests at safe after its max_on or a start: 8",
		},
		{
			name: "a gap is unknown after three periods", length: 10 * time.Minute, rules: []trial.Rule{frost},
			past:  stream{}.read(temperature, degrees(4), 20*time.Second, time.Minute, 10*time.Second).read(temperature, degrees(4), 5*time.Minute, 6*time.Minute, 10*time.Second),
			moves: "20s on frost, 1m20s off frost, 5m0s on frost, 6m20s off frost", seconds: 140,
		},
		{
			name: "minutes stand for their readings", length: 5 * time.Minute, rules: []trial.Rule{frost},
			past:  stream{{temperature, time.Minute, degrees(4), time.Minute}, {temperature, 2 * time.Minute, degrees(4.5), time.Minute}, {temperature, 3 * time.Minute, degrees(6), time.Minute}},
			moves: "1m0s on frost, 3m0s off frost", seconds: 120,
		},
		{
			name: "what cannot be read ends a hold", length: 5 * time.Minute, rules: []trial.Rule{frost},
			past:  stream{{temperature, 20 * time.Second, degrees(4), 0}, {temperature, 30 * time.Second, device.Value{}, 0}},
			moves: "20s on frost, 30s off frost", seconds: 10,
		},
		{
			name: "a requirement that is not met", length: 5 * time.Minute, rules: []trial.Rule{frost}, past: cold,
			policy: func(p *guard.Policy) {
				p.Requires = guard.Requirement{Point: tank, Within: device.Range{Min: 20, Max: 100}, MaxAge: time.Minute}
			},
			refused: "house/heater needs house/tank within 20..100, and it has not been read yet: 8",
		},
		{
			name: "minutes keep a requirement met", length: 4 * time.Minute, rules: []trial.Rule{frost},
			past: stream{{tank, 15 * time.Second, degrees(50), time.Minute}, {temperature, 20 * time.Second, degrees(4), time.Minute}, {tank, 75 * time.Second, degrees(10), time.Minute}},
			policy: func(p *guard.Policy) {
				p.Requires = guard.Requirement{Point: tank, Within: device.Range{Min: 20, Max: 100}, MaxAge: 20 * time.Second}
			},
			moves: "20s on frost, 1m15s off frost", seconds: 55, refused: "house/heater needs house/tank within 20..100: 5",
		},
		{
			name: "the higher rank takes over without a step", length: 3 * time.Minute, rules: []trial.Rule{frost, warm},
			past:  stream{}.read(temperature, degrees(4), 20*time.Second, time.Minute, 10*time.Second).read(temperature, degrees(2), time.Minute, 3*time.Minute, 10*time.Second),
			moves: "20s on frost", seconds: 160, refused: "house/heater is held by rule:warm: 5",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := house(tt.past, tt.length, tt.rules...)
			if tt.policy != nil {
				tt.policy(&o.Policies[0])
			}
			r, err := trial.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := moves(r); got != tt.moves {
				t.Errorf("moves %q, want %q", got, tt.moves)
			}
			var refused []string
			for _, of := range r.Rules {
				for _, u := range of.Outputs {
					for _, w := range u.Refused {
						refused = append(refused, fmt.Sprintf("%s: %d", w.Reason, w.Count))
					}
				}
			}
			if got := strings.Join(refused, ", "); got != tt.refused {
				t.Errorf("refused %q, want %q", got, tt.refused)
			}
			if got := r.Outputs[0].Would.Seconds; got != tt.seconds {
				t.Errorf("%v s away from safe, want %v", got, tt.seconds)
			}
		})
	}
}

// TestWhatHappened: who moved the output in the past moves nothing in the trial, and what it was
// is shown beside it.
func TestWhatHappened(t *testing.T) {
	past := stream{{heater, 0, off, 0}, {temperature, 20 * time.Second, degrees(8), 0}, {heater, time.Minute, on, 0}, {heater, 90 * time.Second, on, 0}, {heater, 2 * time.Minute, off, 0}, {heater, 4 * time.Minute, device.Value{}, 0}}
	r, err := trial.Run(t.Context(), house(past, 5*time.Minute, frost))
	if err != nil {
		t.Fatal(err)
	}
	was := r.Outputs[0].Was
	if len(r.Moves) != 0 || r.Outputs[0].Would != (trial.Use{}) || was.Use != (trial.Use{Moves: 1, Seconds: 60}) || was.Unknown != 60 || len(was.Changes) != 4 {
		t.Errorf("%+v", r)
	}
}

// TestBounds: of rules, of time and of what is answered; and the end of a caller.
func TestBounds(t *testing.T) {
	many := house(stream{}, time.Hour)
	for i := range trial.MaxRules + 1 {
		many.Rules = append(many.Rules, trial.Rule{Name: fmt.Sprint(i), Rule: frost.Rule})
	}
	for name, o := range map[string]trial.Options{
		"no rule": house(stream{}, time.Hour), "many rules": many, "no time": house(stream{}, 0, frost), "a long time": house(stream{}, trial.MaxLength+1, frost),
	} {
		if _, err := trial.Run(t.Context(), o); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	busy := named("busy", 1, func(r *rule.Rule) {
		r.Every, r.Do = 5*time.Second, []rule.Step{{Set: map[string]device.Value{heater: on}, For: time.Second}}
	})
	o := house(stream{}, 24*time.Hour, busy)
	o.Policies[0].Rest = 0
	r, err := trial.Run(t.Context(), o)
	if err != nil || len(r.Moves) != 500 || r.MoreMoves < 10_000 || r.Rules[0].Outputs[0].Moves < 10_000 {
		t.Errorf("%d and %d moves, %v", len(r.Moves), r.MoreMoves, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trial.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestMistake: a rule whose point is gone is left out, and the others are tried.
func TestMistake(t *testing.T) {
	gone := named("gone", 1, func(r *rule.Rule) {
		r.When, r.Hold = "attic/temperature < 5 Cel", map[string]device.Value{heater: on}
	})
	r, err := trial.Run(t.Context(), house(stream{{temperature, 20 * time.Second, degrees(4), 0}}, time.Minute, gone, frost))
	if err != nil || r.Rules[0].Mistake == "" || r.Rules[1].Outputs[0].Moves != 1 {
		t.Errorf("%+v, %v", r.Rules, err)
	}
}
